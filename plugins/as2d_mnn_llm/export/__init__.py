"""Writing decoders for MNN's LLM engine: graphs of operators, quantised weights, the folder that it loads."""
