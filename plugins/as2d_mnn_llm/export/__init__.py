"""Writing models for MNN's LLM engine: graphs, records, conversion, random weights of a given shape."""
