"""Reads JSON from outside: whatever a file holds, the result is an object or one kind of error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from as2d_cli.domain.errors import ModelError
from as2d_cli.system.special_files import read_file_only


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object. Raises `OSError` if the file cannot be read, `ValueError` if it holds none.

    Values may still be of any kind: numbers are not bounded, `Infinity` is one.
    """
    try:
        content = json.loads(read_file_only(path).decode())
    except RecursionError as error:  # more brackets within brackets than Python follows
        raise ValueError("nested too deep") from error
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    return content


def read_model_json(path: Path, hint: str | None = None) -> dict[str, Any]:
    """Read a JSON object that is a part of a model. Raises `ModelError`."""
    try:
        return read_json(path)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise ModelError(f"{path}: missing or broken: {cause}", hint) from error
