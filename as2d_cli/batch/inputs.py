"""What a run is to read: files, folders, patterns, lists and standard input become one list of inputs.

The order is that of what was given; within a folder or a pattern that of the sorted names.
"""

from __future__ import annotations

import glob
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from as2d_cli.audio.sources import copied
from as2d_cli.audio.stream import open_audio
from as2d_cli.domain.errors import As2dError, AudioError, RequestError, reason
from as2d_cli.system.addresses import address, flaw, local, located
from as2d_cli.system.printable import printable
from as2d_cli.system.remote_files import files_in, head, matching
from as2d_cli.transcripts.formats import FORMATS

STDIN = "-"
"""Stands for standard input where a file is expected; a file of that name is `./-`."""
_STDIN_NAME = "stdin"
_HEAD_BYTES = 1 << 20
_FAR_AT_ONCE = 16
"""Files that stores are asked of at a time: there may be thousands, and each takes its while."""

_MEDIA_NAMES = frozenset({
    ".3gp", ".aac", ".ac3", ".aif", ".aiff", ".amr", ".ape", ".au", ".avi", ".caf", ".flac", ".flv",
    ".m4a", ".m4b", ".m4v", ".mka", ".mkv", ".mov", ".mp2", ".mp3", ".mp4", ".mpeg", ".mpg", ".oga",
    ".ogg", ".ogv", ".opus", ".spx", ".w64", ".wav", ".webm", ".wma", ".wmv", ".wv"
})  # fmt: skip
"""A file of such a name in a folder is meant to be heard: if nothing can be, that is to be said."""
_PARTIAL_NAMES = re.compile(
    r".*\.(part|partial|filepart|part-frag\d+|ytdl|aria2|download|downloading|crdownload|opdownload|fdmdownload"
    r"|!qb|!ut|!bt|bc!|xltd)",
    re.IGNORECASE | re.DOTALL,
)
"""Downloads that are not finished, of browsers, yt-dlp, aria2, WinSCP and torrent clients."""


@dataclass(frozen=True, slots=True)
class Input:
    """One thing to transcribe."""

    path: Path
    """Where it lies; of a stream, the name it goes by."""
    subfolder: Path = Path()
    """Its place below the folder that was given, which a chosen output folder mirrors."""
    stream: BinaryIO | None = None
    """What to read instead of `path`; can seek."""
    error: As2dError | None = None
    """Why there is nothing to read, where that is known beforehand."""

    @property
    def source(self) -> Path | BinaryIO:
        """What to open."""
        return self.stream or self.path

    def rewound(self) -> Path | BinaryIO:
        """Return what to open; a stream is read from its beginning, also when it was read before."""
        if self.stream is not None:
            self.stream.seek(0)
        return self.source

    @property
    def name(self) -> str:
        """For messages: one printable line."""
        return printable(self.path)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was found, and what the user should know of the search."""

    found: tuple[Input, ...]
    notes: tuple[str, ...] = ()


def find_inputs(given: Sequence[str], listed: Sequence[str] = ()) -> Inputs:
    """Return the inputs that `given` (paths, patterns, `-`) and then `listed` (paths only) stand for.

    A folder gives the files in and below it that are audio or are called so; hidden ones, and partial
    downloads, are passed over.
    Standard input is read to its end. A pattern without a match, like a missing file, is an input with an
    error. Raises `RequestError` where standard input cannot be meant.
    """
    if sum(text == STDIN for text in given) > 1:
        raise RequestError("- is given twice", "standard input can be read only once")
    far = [text for text in dict.fromkeys((*given, *listed)) if address(located(text)) is not None]
    with ThreadPoolExecutor(_FAR_AT_ONCE) as pool:
        reached = dict(zip(far, pool.map(_written, far), strict=True))
    found = [reached.get(text) or _named(text) for text in given]
    return _together(found + [reached.get(text) or _written(text) for text in listed])


def _named(text: str) -> Inputs:
    if text == STDIN:
        return Inputs((_standard_input(),))
    if not text:  # an unset variable in a script must not mean the whole current folder
        return _refused(Path("''"), AudioError("an empty name was given", "is a variable unset?"))
    if address(located(text)) is None and not os.path.lexists(text) and glob.has_magic(text):
        matches = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute ones
        if not matches:
            return _refused(Path(text), _unmatched(printable(text)))
        return _together(_at(local(Path(match))) for match in matches)
    return _written(text)


def _written(text: str) -> Inputs:
    """Return the input, or all in the folder, of which this is the path or address."""
    path = located(text)
    if "\0" in str(path):  # nothing that asks the system takes such a name
        path = Path(str(path).replace("\0", "?"))
        message = f"{printable(path)}: no file has a NUL byte in its name"
        return _refused(path, AudioError(message, "--null is for lists that end names so"))
    if why := flaw(text):
        return _refused(path, AudioError(f"{printable(text)}: {why}"))
    return _at(path)


def _refused(path: Path, error: AudioError) -> Inputs:
    return Inputs((Input(path, error=error),))


def _unmatched(name: str) -> AudioError:
    return AudioError(f"{name}: no such file, and nothing matches it as a pattern")


def _together(parts: Iterable[Inputs]) -> Inputs:
    parts = list(parts)
    return Inputs(
        tuple(one for part in parts for one in part.found),
        tuple(note for part in parts for note in part.notes),
    )


def _at(path: Path) -> Inputs:
    """Return the input at `path`, or all in it if it is a folder."""
    if (where := address(path)) is not None:
        return _far(path, where)
    if not _is_folder(path):
        return Inputs((Input(path),))
    return _chosen(path, _files_below(path, set()))


def _far(path: Path, where: str) -> Inputs:
    """Return the input at an address, or all of a folder or pattern."""
    name = printable(path)
    try:
        if (files := files_in(where)) is not None:
            return _chosen(path, ((file, None) for file in _not_hidden(files)), _FAR_AT_ONCE)
        if (files := matching(where)) is None:
            return Inputs((Input(path),))
    except OSError as error:
        return _refused(path, AudioError(f"{name}: cannot be reached: {reason(error)}"))
    shown = tuple(map(Input, _not_hidden(files)))
    return Inputs(shown) if shown else _refused(path, _unmatched(name))


def _not_hidden(files: Iterable[Path]) -> list[Path]:
    return [file for file in files if not file.name.startswith(".")]


def _chosen(path: Path, files: Iterable[tuple[Path, AudioError | None]], at_once: int = 1) -> Inputs:
    """Return those of a folder's files that are audio, or are called so."""
    files = list(files)
    with ThreadPoolExecutor(at_once) as pool:
        wanted = list(pool.map(_is_wanted, (file for file, _ in files)))
    found = tuple(
        Input(file, Path() if error else _place_below(path, file), error=error)
        for (file, error), is_wanted in zip(files, wanted, strict=True)
        if error or is_wanted
    )
    name = printable(path)
    left_out = [
        file
        for (file, error), is_wanted in zip(files, wanted, strict=True)
        if not (error or is_wanted or _is_called_like_ours(file))  # our own outputs are no news
    ]
    partial = sum(map(_is_partial, left_out))
    counts = [
        *_counted(len(left_out) - partial, "file that is no audio", "files that are no audio"),
        *_counted(partial, "partial download", "partial downloads"),
    ]
    notes = (f"{name}: ignored {' and '.join(counts)}",) if counts else ()
    nothing = Input(path, error=AudioError(f"{name}: there is no audio in this folder"))
    return Inputs(found or (nothing,), notes)


def _counted(number: int, single: str, several: str) -> list[str]:
    return [f"{number} {single if number == 1 else several}"] if number else []


def _place_below(folder: Path, file: Path) -> Path:
    absolute = file.is_absolute() and not folder.is_absolute()  # so that it looks like no address
    return file.parent.relative_to(folder.absolute() if absolute else folder)


def _files_below(folder: Path, visited: set[tuple[int, int]]) -> Iterator[tuple[Path, AudioError | None]]:
    """Yield the files in `folder`, then those of its folders; links are followed, but not in circles.

    A folder that cannot be read comes with the error that says so: what is in it must not be missed.
    """
    try:
        status = folder.stat()
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield folder, AudioError(f"{printable(folder)}: the folder cannot be read: {reason(error)}")
        return
    if (status.st_dev, status.st_ino) in visited:
        return
    visited.add((status.st_dev, status.st_ino))
    shown = [local(Path(entry.path)) for entry in entries if not entry.name.startswith(".")]
    folders = [path for path in shown if _is_folder(path)]
    # links to nothing, pipes and the like are named by whoever opens them, if they are called like audio
    yield from ((path, None) for path in shown if path not in folders)
    for below in folders:
        yield from _files_below(below, visited)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a link to itself
        return False


def _is_wanted(file: Path) -> bool:
    """Tell whether a file found in a folder is audio, or is called so and deserves an error if not.

    Of one far away its beginning has to be enough, and what is called like our outputs is left there.
    """
    if _is_partial(file):
        return False
    if file.suffix.lower() in _MEDIA_NAMES:
        return True
    where = address(file)
    if where is not None and _is_called_like_ours(file):
        return False
    try:
        if where is None and not file.is_file():  # what is read from a pipe is gone for whom it is meant
            return False
        open_audio(file if where is None else BytesIO(head(where, _HEAD_BYTES))).close()
    except (AudioError, OSError):
        return False
    return True


def _is_partial(file: Path) -> bool:
    """Tell whether a file is called like a partial download, or lies in such a folder, as Safari's do."""
    folder = file.parent
    is_media_folder = Path(folder.stem).suffix.lower() in _MEDIA_NAMES
    return bool(
        _PARTIAL_NAMES.fullmatch(file.name) or (is_media_folder and _PARTIAL_NAMES.fullmatch(folder.name))
    )


def _is_called_like_ours(file: Path) -> bool:
    return file.suffix.lower().removeprefix(".") in FORMATS


def _standard_input() -> Input:
    """Read standard input to its end, into a file without a name."""
    try:
        if sys.stdin.isatty():
            raise RequestError(
                "- reads audio from standard input, but that is a terminal", "pipe audio into it"
            )
        stream = sys.stdin.buffer
        is_file = stat.S_ISREG(os.fstat(stream.fileno()).st_mode) and not stream.tell()
        return Input(Path(_STDIN_NAME), stream=stream if is_file else copied(stream))
    except (OSError, ValueError, AttributeError) as error:  # the last: a notebook has another one
        failure = AudioError(f"{_STDIN_NAME}: cannot be read: {reason(error)}")
        return Input(Path(_STDIN_NAME), error=failure)
