"""Texts that are written as files, here or far away, whole or not at all."""

from __future__ import annotations

from pathlib import Path

from as2d_cli.audio.sources import reason
from as2d_cli.domain.errors import OutputError
from as2d_cli.system.addresses import address
from as2d_cli.system.atomic_files import write_whole
from as2d_cli.system.printable import printable
from as2d_cli.system.remote_files import put


def write_atomic(path: Path, text: str) -> None:
    """Write `text` as UTF-8 without BOM, newlines as they are; `path` holds all of it or is as it was.

    Folders that are missing are made. Raises OutputError.
    """
    content = text.encode("utf-8", "ignore")  # without lone surrogates, which no UTF-8 can hold
    try:
        if (where := address(path)) is not None:
            put(where, content)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content, lasting=True)
    except (OSError, ValueError) as error:
        raise OutputError(
            f"{printable(path)}: cannot be written: {reason(error)}",
            "is there space, and may you write there? -o chooses another folder",
        ) from error
