"""What a comparison leaves, one JSON line per file, contestant and repeat, and the tables made of it.

All figures are of sums: of each file the fastest lap counts, and only files that every contestant of the
table has done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jiwer
from whisper_normalizer.basic import BasicTextNormalizer
from whisper_normalizer.english import EnglishTextNormalizer

_ENGLISH, _BASIC = EnglishTextNormalizer(), BasicTextNormalizer()
REFERENCES = ("faster-whisper-int8", "faster-whisper-int8:text", "faster-whisper-int8-batched:text")
"""What each contestant's time is compared with."""
QUIET_SHARE = 0.25
"""Most that other programs may take, in processors."""
_LENGTHS = {"under 15 s": 15.0, "15 to 30 s": 30.0, "over 30 s": float("inf")}


@dataclass(frozen=True, slots=True)
class Row:
    """One file transcribed by one contestant, once."""

    contestant: str
    """Its name; with `:text` behind it if no times were asked for."""
    repeat: int
    folder: str
    file: str
    audio_s: float
    language: str | None
    reference: str | None
    text: str
    segments: int
    wall_s: float
    cpu_s: float
    others_s: float
    """Processor time that other programs took meanwhile."""
    peak_bytes: int
    run: str
    """When the run began that it is from, which has a line of its own with all about machine and versions."""

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What is done once only."""
        return (self.contestant, self.folder, self.file, self.repeat)

    @property
    def is_disturbed(self) -> bool:
        """Whether other programs took so much that the wall time says little."""
        return self.others_s > QUIET_SHARE * self.wall_s


def append(path: Path, kind: str, values: Mapping[str, Any]) -> None:
    """Add one JSON line."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"type": kind, **values}, ensure_ascii=False) + "\n")


def read(path: Path) -> list[Row]:
    """Return the rows of a file, none if it does not exist."""
    if not path.is_file():
        return []
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Row(**{name: value for name, value in record.items() if name != "type"})
        for record in records
        if record["type"] == "lap"
    ]


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """Yield Markdown tables, for each folder and class of length."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        length = next(name for name, most_s in _LENGTHS.items() if row.audio_s < most_s)
        groups.setdefault(f"{row.folder}, {length}", []).append(row)
    for name, chosen in groups.items():
        yield from _table(name, chosen)


def _table(name: str, rows: Sequence[Row]) -> Iterator[str]:
    names = list(dict.fromkeys(row.contestant for row in rows))
    by_file: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in rows:
        by_file.setdefault((row.folder, row.file), {}).setdefault(row.contestant, []).append(row)
    complete = [found for found in by_file.values() if len(found) == len(names)]
    sums = {name: _Sum.of([found[name] for found in complete]) for name in names}
    if not complete:
        return
    audio_s = sums[names[0]].audio_s
    repeats = min(len(laps) for found in complete for laps in found.values())
    others = sum(found.others_s for found in sums.values()) / sum(found.wall_s for found in sums.values())
    yield f"{name}: {len(complete)} files, {audio_s:.0f} s, fastest of {repeats} laps or more"
    yield f"(meanwhile other programs took {others:.2f} processors)"
    yield ""
    against = [reference for reference in REFERENCES if reference in sums]
    head = ["", "wall s", "RTFx", *(f"x {reference}" for reference in against)]
    yield _line([*head, "cpu s", "WER", "segments", "peak MB"])
    yield _line(["---"] + ["--:"] * (len(head) + 3))
    for contestant in sorted(names, key=lambda name: sums[name].wall_s):
        found = sums[contestant]
        faster = [f"{sums[reference].wall_s / found.wall_s:.2f}" for reference in against]
        figures = [f"{found.wall_s:.1f}", f"{audio_s / found.wall_s:.1f}", *faster, f"{found.cpu_s:.1f}"]
        error = f"{found.word_error_rate:.2%}"
        yield _line([contestant, *figures, error, str(found.segments), f"{found.peak_bytes / 1e6:.0f}"])
    yield ""


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


@dataclass(frozen=True, slots=True)
class _Sum:
    """One contestant's files together."""

    audio_s: float
    wall_s: float
    cpu_s: float
    others_s: float
    word_error_rate: float
    segments: int
    peak_bytes: int

    @classmethod
    def of(cls, files: Sequence[Sequence[Row]]) -> _Sum:
        """Add up the fastest laps of each file."""
        best = [min(laps, key=lambda row: row.wall_s) for laps in files]
        return cls(
            audio_s=sum(row.audio_s for row in best),
            wall_s=sum(row.wall_s for row in best),
            cpu_s=sum(min(row.cpu_s for row in laps) for laps in files),
            others_s=sum(row.others_s for row in best),
            word_error_rate=_word_error_rate(best),
            segments=sum(row.segments for row in best),
            peak_bytes=max((row.peak_bytes for laps in files for row in laps), default=0),
        )


def _word_error_rate(rows: Sequence[Row]) -> float:
    """Pooled, after Whisper's normaliser."""
    known = [(row.reference, row) for row in rows if row.reference]
    if not known:
        return float("nan")
    references = [_normalised(reference, row.language) for reference, row in known]
    return float(jiwer.wer(references, [_normalised(row.text, row.language) for _, row in known]))


def _normalised(text: str, language: str | None) -> str:
    return str((_ENGLISH if language == "en" else _BASIC)(text)).strip()
