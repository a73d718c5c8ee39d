"""Measures what drafting is worth here: the same windows decoded in every mode, side by side."""
