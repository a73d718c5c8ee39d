"""Where this tool keeps files of its own."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """Return the folder for what can be made again: $AS2D_CACHE_DIR, else the user's cache folder for as2d.

    The folder may not exist yet.
    """
    if chosen := os.environ.get("AS2D_CACHE_DIR"):
        return Path(chosen).expanduser().absolute()
    import platformdirs  # here: the command line must start fast

    return platformdirs.user_cache_path("as2d", appauthor=False)
