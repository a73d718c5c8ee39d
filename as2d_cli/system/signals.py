"""The signals that ask a command to end."""

from __future__ import annotations

import signal

STOPS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""Ctrl-C, `kill`, and the end of the terminal or session."""
