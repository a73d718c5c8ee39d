"""Decoder-only language models on MNN's LLM engine, as targets and drafters that read or listen."""
