"""Hook implementations of the LLM plugin. Heavy imports wait until a hook is called."""

from __future__ import annotations

CONVERTER_VERSION = "1"
"""Raised when converted files change meaning, so that older ones are converted anew."""
