"""Whisper on MNN: the engine of ARM, of every processor without VNNI, and the reference."""
