"""Opens the bytes of an input as a file that can seek: from a file, a remote file, a pipe or another stream.

`containers` finds out what the bytes mean.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from as2d_cli.domain.errors import AudioError, RequestError, reason
from as2d_cli.system.addresses import address
from as2d_cli.system.printable import printable
from as2d_cli.system.remote_files import copy
from as2d_cli.system.special_files import open_at_once, pieces


def samples_as_file(samples: NDArray[Any], sample_rate_hz: int) -> BinaryIO:
    """Return samples, shape (n_samples,) or (n_samples, n_channels), as a WAV file in memory.

    Floats are within [-1, 1], integers over their whole range. Raises `RequestError` for other arrays.
    """
    import soundfile

    kind, bits = samples.dtype.kind, 8 * samples.dtype.itemsize
    if kind not in "fiu" or samples.ndim not in (1, 2):
        raise RequestError(
            f"an array of {samples.dtype} with {samples.ndim} dimensions is no audio",
            "pass floats or integers, (n_samples,) or (n_samples, n_channels)",
        )
    if sample_rate_hz <= 0:
        raise RequestError(f"there is no sample rate of {sample_rate_hz} Hz", "pass the real one")
    if kind != "f":
        half = 2.0 ** (bits - 1)
        samples = samples / half - (kind == "u")
    file = BytesIO()
    soundfile.write(file, samples.astype(np.float32), sample_rate_hz, format="WAV", subtype="FLOAT")
    file.seek(0)
    return file


class Opened(NamedTuple):
    """A seekable file."""

    file: BinaryIO
    name: str
    """For messages."""
    ours: bool
    """Whether we must close it."""
    sha256: str | None
    """Of a copy of a file far away, which is not to be fetched once more for that."""


def open_file(source: Path | BinaryIO) -> Opened:
    """Return a seekable file of `source`.

    What cannot seek (a pipe) is first copied to an unnamed temporary file, so that any container
    works and memory stays bounded. Raises AudioError.
    """
    sha256 = None
    if isinstance(source, Path):
        name = printable(source)
        file, sha256 = _open_path(source, name)
    else:
        label = getattr(source, "name", None)
        # our copy of standard input goes by the number of a file without a name
        is_stdin = source is getattr(sys.stdin, "buffer", None) or isinstance(label, int)
        name = "stdin" if is_stdin else printable(str(label or "audio"))
        file = source
    try:
        ours = isinstance(source, Path)
        if not file.seekable():
            with file if ours else nullcontext():
                file = copied(file)
            ours = True
        empty = not file.seek(0, os.SEEK_END)
        if empty and ours:
            file.close()
    except (OSError, ValueError) as error:
        raise AudioError(f"{name}: cannot be read: {reason(error)}") from error
    if empty:
        raise AudioError(f"{name}: the file is empty", "it holds no bytes; was the recording saved?")
    return Opened(file, name, ours, sha256)


def _open_path(path: Path, name: str) -> tuple[BinaryIO, str | None]:
    try:
        if (where := address(path)) is not None:
            return _fetched(where)
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise AudioError(f"{name}: is a directory, not a file")
        if stat.S_ISFIFO(mode):
            return _heard(path), None
        if not stat.S_ISREG(mode):
            raise AudioError(f"{name}: is a device or socket, not a file")
        return path.open("rb"), None
    except FileNotFoundError as error:
        raise AudioError(f"{name}: no such file") from error
    except (OSError, ValueError) as error:
        raise AudioError(f"{name}: cannot be opened: {reason(error)}") from error


def _heard(pipe: Path) -> BinaryIO:
    """Return a copy of what is written into a named pipe. Raises `OSError`."""
    with open_at_once(pipe) as opened, _kept() as heard:
        for piece in pieces(opened):
            heard.write(piece)
        return heard


def _fetched(where: str) -> tuple[BinaryIO, str]:
    """Return a copy of a far file, and its digest: reading goes to and fro, and a failure is to show here."""
    with _kept() as copy_here:
        return copy_here, copy(where, copy_here)


def copied(file: BinaryIO) -> BinaryIO:
    """Return a copy of what can still be read from `file`, in a temporary file without a name."""
    with _kept() as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
        copy.seek(0)
        return copy


@contextmanager
def _kept() -> Iterator[BinaryIO]:
    """Give a temporary file without a name, which is closed only if what is done with it fails."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - handed to the caller
    try:
        yield copy
    except BaseException:
        copy.close()
        raise
