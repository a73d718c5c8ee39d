"""The folders where as2d keeps files of its own, cache and configuration, and the meaning of `~`."""

from __future__ import annotations

import os
from pathlib import Path

from as2d_cli.domain.errors import RequestError


def cache_root() -> Path:
    """Return the folder for what can be made again: $AS2D_CACHE_DIR, else the user's cache folder for as2d.

    The folder may not exist yet. Raises `RequestError` if there is no home folder to have it in.
    """
    if chosen := os.environ.get("AS2D_CACHE_DIR"):
        return expanded(chosen).absolute()
    import platformdirs  # here: the command line must start fast

    return _own(platformdirs.user_cache_path("as2d", appauthor=False))


def config_root() -> Path:
    """Return the user's configuration folder for as2d, which may not exist. Raises as `cache_root`."""
    import platformdirs  # here: the command line must start fast

    return _own(platformdirs.user_config_path("as2d", appauthor=False))


def _own(folder: Path) -> Path:
    if folder.parts[0] == "~":  # left as it is where nobody knows a home folder
        raise RequestError("there is no home folder to keep files of as2d in", "set HOME")
    return folder.absolute()


def expanded(path: str) -> Path:
    """Return a path with the folder that `~` or `~NAME` means. Raises `RequestError` if there is none."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise RequestError(f"{path}: nobody of that name has a home folder", "give the whole path") from error
