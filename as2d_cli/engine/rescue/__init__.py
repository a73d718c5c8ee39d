"""Second decodings of windows whose first text may be wrong (docs/decisions/0017-rescue.md)."""
