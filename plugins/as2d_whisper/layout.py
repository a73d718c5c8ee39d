"""What the graphs and their callers agree on; apart from `graph`, as onnx takes long to import."""

HEAD_SIZE = 64  # of every published Whisper; the query scale depends on it
KEY_MULTIPLE = 8
"""Self-attention keys number a multiple of this: exact rows need it (docs/decisions/0001-exact-rows.md)."""
