"""What is measured on: audio files, or folders of them with a manifest that holds their true texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from as2d_cli.audio.stream import open_audio
from as2d_cli.audio.windows import split
from as2d_cli.domain.errors import AudioError, RequestError
from as2d_cli.domain.types import Request, Window
from as2d_cli.engine.run.tasks import WindowTask
from as2d_cli.system.special_files import read_file_only

MANIFEST = "manifest.jsonl"


@dataclass(frozen=True, slots=True)
class Clip:
    """An audio file with what is known of it."""

    path: Path
    text: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BenchWindow:
    """A window to measure on."""

    index: int
    """Its place among all windows of the run."""
    group: int
    """Number of its file."""
    clip: Clip
    window: Window
    language: str | None
    last: bool = False
    """Whether it ends its file."""

    def task(self) -> WindowTask:
        """Return what an engine is asked to do."""
        return WindowTask(self.group, self.window, Request(language=self.language), traced=True)


def find_clips(paths: Sequence[Path]) -> list[Clip]:
    """Return the files, and for folders what their manifest lists.

    Raises `RequestError` for a folder without a readable manifest, or if nothing is left.
    """
    clips = [clip for path in paths for clip in (_listed(path) if path.is_dir() else [Clip(path)])]
    if not clips:
        raise RequestError("there is nothing to measure on", "give audio files")
    return clips


def _listed(folder: Path) -> Iterator[Clip]:
    manifest = folder / MANIFEST
    try:
        lines = read_file_only(manifest).decode().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(
            f"{manifest}: cannot be read: {error}",
            "a folder needs a manifest.jsonl with file, text and lang on each line; or give audio files",
        ) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            clip = Clip(folder / entry["file"], entry.get("text"), entry.get("lang"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RequestError(
                f"{manifest}, line {number}: is no JSON object with a file: {error}"
            ) from error
        yield clip


def read_windows(
    clips: Iterable[Clip], *, language: str | None = None, known: Sequence[str] = (), limit: int | None = None
) -> tuple[list[BenchWindow], list[str]]:
    """Cut the clips into windows, at most `limit`; return them and what was left out and why.

    `language` goes before what a manifest says; a language that is not `known` is left to be detected.
    Raises `RequestError` if no window is left.
    """
    notes: list[str] = []
    windows = list(islice(_windows(clips, language, known, notes), limit))
    if not windows:
        raise RequestError("no window of audio could be read", "; ".join(notes) or None)
    return windows, notes


def _windows(
    clips: Iterable[Clip], language: str | None, known: Sequence[str], notes: list[str]
) -> Iterator[BenchWindow]:
    index = 0
    for group, clip in enumerate(clips):
        said = language or clip.language
        try:
            stream = open_audio(clip.path)
            try:
                parts = list(split(stream.blocks()))
            finally:
                stream.close()
        except AudioError as error:
            notes.append(f"left out: {error.message}")
            continue
        for part in parts:
            last = part is parts[-1]
            yield BenchWindow(index, group, clip, part, said if said in known else None, last)
            index += 1
