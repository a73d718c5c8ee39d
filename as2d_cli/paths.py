"""Where this tool keeps files of its own."""

from __future__ import annotations

import os
from pathlib import Path

from as2d_cli.errors import RequestError


def cache_root() -> Path:
    """Return the folder for what can be made again: $AS2D_CACHE_DIR, else the user's cache folder for as2d.

    The folder may not exist yet.
    """
    if chosen := os.environ.get("AS2D_CACHE_DIR"):
        return expanded(chosen).absolute()
    import platformdirs  # here: the command line must start fast

    return platformdirs.user_cache_path("as2d", appauthor=False)


def config_root() -> Path:
    """Return the user's configuration folder for as2d, which may not exist."""
    import platformdirs  # here: the command line must start fast

    return platformdirs.user_config_path("as2d", appauthor=False)


def expanded(path: str) -> Path:
    """Return a path with the folder that `~` or `~NAME` means. Raises `RequestError` if there is none."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise RequestError(f"{path}: nobody of that name has a home folder", "give the whole path") from error
