"""Language models from GGUF files: reading, dequantising, writing them as graphs."""
