"""Damaged files in every format there is: each must give audio or an `AudioError`, within seconds.

    pip install .
    python tools/fuzz/fuzz_audio.py [--inputs 20000] [--first 0] [--jobs 2] [--keep FOLDER]

Input number N is the same on every machine with the same libraries: a short file of some format, with some
of its bytes changed, repeated, removed or replaced by another file's. Processes apart read them, so that a
crash is noticed. Exit code 1 if one crashes, hangs, runs out of memory or raises anything else.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from damaged import mutated, seeds

from as2d_cli.audio.stream import open_audio
from as2d_cli.domain.errors import AudioError

TIMEOUT_S = 10.0
MEMORY_BYTES = 4 << 30
"""Address space of a reading process; what needs more is taken for a file that eats the memory."""


def read(path: Path) -> str:
    """Read a file to its end and return what it turned out to be: `audio` or `error`."""
    try:
        stream = open_audio(path)
        try:
            for block in stream.blocks():
                if block.dtype != np.float32 or block.ndim != 1 or not np.isfinite(block).all():
                    raise ValueError(f"a block of {block.dtype}, {block.ndim} dimensions, or not finite")
        finally:
            stream.close()
    except AudioError as error:
        return "error" if "\n" not in error.message else "error of several lines"
    return "audio"


def serve(pipe: Connection, seed_folder: Path, number: int) -> None:
    """Read the inputs whose numbers come through the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    warnings.simplefilter("error")
    sources = [(path.name, path.read_bytes()) for path in sorted(seed_folder.iterdir())]
    path = seed_folder.parent / f"{number}.bin"
    pipe.send("ready")
    with suppress(EOFError):
        while True:
            path.write_bytes(mutated(pipe.recv(), sources)[1])
            try:
                pipe.send((read(path), ""))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
                pipe.send((f"traceback: {type(error).__name__}", traceback.format_exc()))


class Reader:
    """A process that reads inputs, replaced when it dies or hangs."""

    def __init__(self, seed_folder: Path, number: int) -> None:
        self._arguments = (seed_folder, number)
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, *self._arguments), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()

    def read(self, number: int) -> tuple[str, str]:
        """Return what became of an input, and a traceback if there is one."""
        self._pipe.send(number)
        if not self._pipe.poll(TIMEOUT_S):
            self.stop()
            self._start()
            return "hang", ""
        try:
            kind, detail = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            kind, detail = f"crash: exit code {self._process.exitcode}", ""
            self._start()
        return kind, detail

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


@dataclass
class Findings:
    counts: Counter[str] = field(default_factory=Counter)
    bad: list[tuple[int, str, str]] = field(default_factory=list)
    slowest_s: float = 0.0

    def add(self, number: int, kind: str, detail: str, seconds: float) -> None:
        """Count what became of an input."""
        self.counts[kind] += 1
        self.slowest_s = max(self.slowest_s, seconds)
        if kind not in {"audio", "error"}:
            self.bad.append((number, kind, detail))


def fuzz(numbers: Iterable[int], jobs: int, folder: Path) -> Findings:
    """Read the inputs with these numbers; `folder` gets the undamaged files."""
    seed_folder = folder / "seeds"
    seed_folder.mkdir()
    for name, data in seeds():
        (seed_folder / name).write_bytes(data)
    findings, left, lock = Findings(), iter(numbers), threading.Lock()

    def work(job: int) -> None:
        reader = Reader(seed_folder, job)
        while True:
            with lock:
                number = next(left, None)
            if number is None:
                break
            began = time.perf_counter()
            kind, detail = reader.read(number)
            with lock:
                findings.add(number, kind, detail, time.perf_counter() - began)
        reader.stop()

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, range(jobs)))
    return findings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="write what is not read as it should be into this folder")
    arguments = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        numbers = range(arguments.first, arguments.first + arguments.inputs)
        findings = fuzz(numbers, arguments.jobs, Path(folder))
        paths = sorted((Path(folder) / "seeds").iterdir())
        sources = [(path.name, path.read_bytes()) for path in paths]
    for number, kind, detail in findings.bad:
        name, data = mutated(number, sources)
        print(f"input {number} (from {name}): {kind}\n{detail}")
        if arguments.keep:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            (arguments.keep / f"{number}-{name}").write_bytes(data)
    print(
        f"{arguments.inputs} inputs from {len(sources)} files in {time.perf_counter() - began:.0f} s: "
        + ", ".join(f"{count} {kind}" for kind, count in findings.counts.most_common())
        + f"; the slowest took {findings.slowest_s:.2f} s"
    )
    sys.exit(bool(findings.bad))


if __name__ == "__main__":
    main()
