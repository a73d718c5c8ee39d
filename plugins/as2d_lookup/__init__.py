"""A drafter without a model: it proposes what was said before, and what the request says."""
