"""The signals that ask a command to end."""

from __future__ import annotations

import signal

STOPS = frozenset(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Ctrl-C, `kill`, and the end of the terminal or session, which Windows does not have."""
