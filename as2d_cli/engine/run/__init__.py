"""One run of windows through the processes of an engine: where each goes, and what becomes of it."""
