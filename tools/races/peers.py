"""Speed of as2d beside faster-whisper and whisper.cpp: same weights, audio and threads, in one run.

    pip install ".[test]" faster-whisper pywhispercpp psutil
    python tools/races/peers.py FOLDER... -o laps.jsonl [--repeats N] [--contestants LIST] [--minutes M]
    python tools/races/peers.py --from laps.jsonl
    python tools/races/peers.py FOLDER... --scaling files|minutes --sizes 10,100,1000 [-- OPTION...]

Each FOLDER holds audio files and a manifest.jsonl (file, text, lang). Every contestant is loaded in a
process of its own and transcribes one file that does not count; then each file goes to all of them in
turn, beginning with another one for each file. Times are from the path of a file to its text, so they
hold reading the audio, not loading the model. A run that ended early, also by --minutes, goes on where
it stopped, and repeats what other programs on the machine disturbed.

With --scaling only as2d runs, with the given options, over so many files of 4 s, or over one file of so
many minutes.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import laps
import scaling
from contestants import CONTESTANTS, Setting
from handed_on import parsed
from racer import Lap, Racer

from as2d_cli import __version__, bench
from as2d_cli.audio.stream import open_audio
from as2d_cli.bench.run.clips import Clip, find_clips
from as2d_cli.bench.run.provenance import commit
from as2d_cli.domain.types import SAMPLE_RATE_HZ
from as2d_cli.system.device import device
from as2d_cli.system.paths import cache_root

_TEXT_ONLY = ":text"
_DEFAULT = [
    *("as2d", "as2d:text", "as2d-fitted", "as2d-fitted:text", "as2d-auto"),
    *("faster-whisper-int8", "faster-whisper-int8:text", "faster-whisper-float32"),
    *("faster-whisper-int8-batched", "faster-whisper-int8-batched:text"),
    *("whisper.cpp-f16", "whisper.cpp-q8_0", "whisper.cpp-q5_0"),
]
_PRACTICE = Clip(Path(__file__).parents[2] / "tests" / "data" / "jfk.flac", language="en")
_PACKAGES = ("MNN", "faster-whisper", "ctranslate2", "pywhispercpp", "numpy")


@dataclass(frozen=True, slots=True)
class Turn:
    """One file for one contestant."""

    clip: Clip
    repeat: int
    contestant: str

    @property
    def key(self) -> tuple[str, str, str, int]:
        """As of the row that it will give."""
        return (self.contestant, self.clip.path.parent.name, self.clip.path.name, self.repeat)


def main() -> None:
    """Measure what is not measured yet, then print the tables."""
    arguments = _arguments()
    if arguments.scaling:
        measure = scaling.by_files if arguments.scaling == "files" else scaling.by_length
        print("\n".join(measure(find_clips(arguments.folders), arguments.sizes, arguments.options)))
        return
    if arguments.folders:
        known = laps.read(arguments.out)
        done, tried = {row.key for row in known if not row.is_disturbed}, {row.key for row in known}
        clips = sorted(find_clips(arguments.folders), key=lambda clip: clip.path.stat().st_size)
        left = [turn for turn in _turns(clips, arguments) if turn.key not in done]
        left.sort(key=lambda turn: turn.key in tried)
        if left:
            _race(left, arguments)
    print("\n".join(laps.tables(laps.read(arguments.out))))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument(
        "-o", "--from", dest="out", type=Path, default=Path("laps.jsonl"), help="results, JSON lines"
    )
    parser.add_argument(
        "--contestants",
        type=_names,
        default=_DEFAULT,
        help=f"of {', '.join(CONTESTANTS)};\nwith {_TEXT_ONLY} behind a name no times are asked for",
    )
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="take only each so manieth file")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no file after so long")
    parser.add_argument("--model", default="whisper-base")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--models-folder",
        type=Path,
        default=cache_root() / "peers",
        help="where the peers' forms of the weights are kept",
    )
    parser.add_argument("--scaling", choices=["files", "minutes"])
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")])
    return parsed(parser)


def _names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name.removesuffix(_TEXT_ONLY) not in CONTESTANTS:
            raise argparse.ArgumentTypeError(f"there is no contestant {name!r}")
    return names


def _turns(clips: list[Clip], arguments: argparse.Namespace) -> Iterator[Turn]:
    for repeat in range(arguments.repeats):
        for number, clip in enumerate(clips[:: arguments.every]):
            first = (number + repeat) % len(arguments.contestants)
            for name in arguments.contestants[first:] + arguments.contestants[:first]:
                yield Turn(clip, repeat, name)


def _race(turns: list[Turn], arguments: argparse.Namespace) -> None:
    began = time.monotonic()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # of the processes that are started now
    setting = Setting(arguments.model, arguments.models_folder, arguments.threads)
    setting.checkpoint  # noqa: B018 - fetched before anybody waits for it
    run = _provenance(arguments)
    names = dict.fromkeys(turn.contestant for turn in turns)
    racers = {name: Racer(name, setting) for name in dict.fromkeys(name.partition(":")[0] for name in names)}
    run["load_s"] = {name: round(racer.load_s, 2) for name, racer in racers.items()}
    laps.append(arguments.out, "run", run)
    for name in names:
        _lap(racers, Turn(_PRACTICE, -1, name))
    for turn in turns:
        if time.monotonic() - began > arguments.minutes * 60:
            break
        laps.append(arguments.out, "lap", asdict(_row(turn, _lap(racers, turn), run["utc"])))
    for racer in racers.values():
        racer.stop()


def _lap(racers: Mapping[str, Racer], turn: Turn) -> Lap:
    name, _, text_only = turn.contestant.partition(":")
    return racers[name].run(turn.clip.path, turn.clip.language, timed=not text_only)


def _row(turn: Turn, lap: Lap, run: str) -> laps.Row:
    contestant, folder, file, repeat = turn.key
    return laps.Row(
        contestant=contestant,
        repeat=repeat,
        folder=folder,
        file=file,
        audio_s=_duration_s(turn.clip.path),
        language=turn.clip.language,
        reference=turn.clip.text,
        text=lap.heard.text,
        segments=lap.heard.segments,
        wall_s=lap.wall_s,
        cpu_s=lap.cpu_s,
        others_s=lap.others_s,
        peak_bytes=lap.peak_bytes,
        run=run,
    )


@lru_cache
def _duration_s(path: Path) -> float:
    """Count samples: the heads of compressed files are not to be trusted."""
    return sum(map(len, open_audio(path).blocks())) / SAMPLE_RATE_HZ


def _provenance(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "utc": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "as2d": __version__,
        "commit": commit(Path(bench.__file__).parent),
        "device": device(),
        "os": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
        "model": arguments.model,
        "threads": arguments.threads,
        "load": os.getloadavg()[0],
        "command": shlex.join(sys.argv),
    }


if __name__ == "__main__":
    main()
