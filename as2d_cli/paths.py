"""Where this tool keeps files of its own."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_root() -> Path:
    """Return the folder for everything that can be made again: AS2D_CACHE_DIR, or the platform's own.

    The folder may not exist yet.
    """
    chosen = os.environ.get("AS2D_CACHE_DIR")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("as2d", appauthor=False))
