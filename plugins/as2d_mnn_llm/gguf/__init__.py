"""Language models from GGUF files: read, their blocks requantised, written for MNN's LLM engine."""
