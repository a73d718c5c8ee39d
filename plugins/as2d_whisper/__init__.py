"""Whisper-family targets and drafters on MNN."""
