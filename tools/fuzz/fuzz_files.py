"""Hostile files for every reader of files that others make: something valid or one clear error comes of each.

    pip install -e ".[test]"
    python tools/fuzz/fuzz_files.py [--mutations 20000] [--seed 0] [--reader NAME...] [--keep FOLDER]

A mutation is a violation if its reader raises anything but `As2dError` with one printable line, takes more
than 2 s of processor time, wants more memory than `MEMORY_BYTES` beyond what the process had, or kills the
process: readers run in processes apart. Mutation N of a seed is the same on every machine. Prints one row of
a Markdown table for each reader; the exit code is 1 if there is a violation. Readers and sound files are in
`outside_files.py`; media are `fuzz_audio.py`'s.
"""

from __future__ import annotations

import argparse
import json
import mmap
import multiprocessing
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import deque
from dataclasses import dataclass, field
from multiprocessing import connection
from pathlib import Path

os.environ |= {"TOKENIZERS_PARALLELISM": "false", "MALLOC_ARENA_MAX": "1"}

from outside_files import READERS, Reader, leave_out_mnn

from as2d_cli.domain.errors import As2dError

CPU_S = 2.0
STALL_S = 60.0
MEMORY_BYTES = 96 << 20
"""Far more than the sound files need, which have less than 1 MB."""
CHUNK = 1000
MAX_MESSAGE = 2000
MAX_BYTES = 1 << 20
"""Of a mutation: repeating pieces could make any size, and a reader may read all of a file."""
_STATE = struct.Struct("<QQQdd")


@dataclass
class Shared:
    """What a reading process tells of itself, in memory that survives it."""

    memory: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, _STATE.size))

    def put(self, number: int, accepted: int, refused: int, slowest_s: float, peak_bytes: float) -> None:
        """Replace all of it."""
        self.memory[:] = _STATE.pack(number, accepted, refused, slowest_s, peak_bytes)

    def get(self) -> tuple[int, int, int, float, float]:
        """Return the number in work, counts of accepted and refused ones, the slowest and the peak."""
        return _STATE.unpack(self.memory[:])


def mutated(reader: Reader, name: str, seed: int, number: int) -> tuple[str, bytes]:
    """Return which file mutation `number` is of, and its bytes."""
    draw = random.Random(f"{name} {seed} {number}")
    file = draw.choice(sorted(reader.mutations))
    return file, reader.mutations[file](draw, reader.files[file])[:MAX_BYTES]


def judge(reader: Reader, folder: Path) -> str:
    """Have a folder read; return `accepted`, `refused`, or what is wrong with how it was refused."""
    try:
        reader.read(folder)
    except As2dError as error:
        return _fault(error) or "refused"
    except BaseException:  # noqa: BLE001 - whatever it is, a panic of Rust too, it is a finding
        return traceback.format_exc()
    return "accepted"


def _fault(error: As2dError) -> str:
    for text in filter(None, (error.message, error.hint)):
        if not text.isprintable() or len(text) > MAX_MESSAGE:
            return f"a message of {len(text)} characters: {text[:300]!r}"
    cause: BaseException | None = error
    while cause is not None:
        # of our own errors the causes tell: the message may quote what the file says of memory
        if isinstance(cause, MemoryError) or ("memory" in str(cause) and not isinstance(cause, As2dError)):
            return "it wanted too much memory:\n" + traceback.format_exc()
        cause = cause.__cause__ or cause.__context__
    return ""


def work(name: str, reader: Reader, seed: int, numbers: range, folder: Path, shared: Shared) -> None:
    """Body of a reading process."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = _peak_bytes()
    accepted, refused, slowest_s = 0, 0, 0.0
    place = Path(tempfile.mkdtemp(dir=folder))
    for file, data in reader.files.items():
        (place / file).write_bytes(data)
    with (folder / "violations").open("a") as violations:
        for number in numbers:
            shared.put(number, accepted, refused, slowest_s, _peak_bytes() - before)
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
            file, data = mutated(reader, name, seed, number)
            (place / file).write_bytes(data)
            resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, resource.RLIM_INFINITY))
            signal.setitimer(signal.ITIMER_PROF, CPU_S)
            began = time.process_time()
            found = judge(reader, place)
            slowest_s = max(slowest_s, time.process_time() - began)
            signal.setitimer(signal.ITIMER_PROF, 0)
            (place / file).write_bytes(reader.files[file])
            accepted += found == "accepted"
            refused += found == "refused"
            if found not in {"accepted", "refused"}:
                violations.write(json.dumps([number, found]) + "\n")
                violations.flush()
    shared.put(numbers.stop, accepted, refused, slowest_s, _peak_bytes() - before)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@dataclass
class Findings:
    accepted: int = 0
    refused: int = 0
    violations: list[tuple[int, str]] = field(default_factory=list)
    slowest_s: float = 0.0
    peak_bytes: float = 0.0

    def row(self, name: str, count: int) -> str:
        """Return the row of a Markdown table."""
        figures = (count, self.accepted, self.refused, len(self.violations), round(1e3 * self.slowest_s))
        return " | ".join([f"| {name}", *map(str, figures), f"{self.peak_bytes / 1e6:.0f} |"])


@dataclass
class Running:
    process: multiprocessing.Process
    numbers: range
    shared: Shared
    seen: tuple[int, float]
    """The number that was in work when somebody last looked, and when it was first seen."""


def fuzz(name: str, reader: Reader, seed: int, count: int, jobs: int) -> Findings:
    """Have a reader read so many mutations."""
    findings, context = Findings(), multiprocessing.get_context("fork")
    waiting = deque(range(at, min(at + CHUNK, count)) for at in range(0, count, CHUNK))
    running: list[Running] = []
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < jobs:
                numbers, shared = waiting.popleft(), Shared()
                process = context.Process(
                    target=work, args=(name, reader, seed, numbers, Path(folder), shared)
                )
                process.start()
                running.append(Running(process, numbers, shared, (numbers.start, time.monotonic())))
            connection.wait([one.process.sentinel for one in running], timeout=1)
            for one in list(running):
                if _has_ended(one):
                    running.remove(one)
                    waiting.extend(_taken(findings, one))
        noted = Path(folder) / "violations"
        findings.violations += [tuple(json.loads(line)) for line in noted.read_text().splitlines()]
    return findings


def _has_ended(one: Running) -> bool:
    number = one.shared.get()[0]
    if number != one.seen[0]:
        one.seen = (number, time.monotonic())
    elif time.monotonic() - one.seen[1] > STALL_S:
        one.process.kill()
    return not one.process.is_alive()


def _taken(findings: Findings, one: Running) -> list[range]:
    """Add what a process found; return what it left undone."""
    one.process.join()
    number, accepted, refused, slowest_s, peak_bytes = one.shared.get()
    findings.accepted += accepted
    findings.refused += refused
    findings.slowest_s = max(findings.slowest_s, slowest_s)
    findings.peak_bytes = max(findings.peak_bytes, peak_bytes)
    if one.process.exitcode == 0:
        return []
    ended = {-signal.SIGPROF: "it took too long", -signal.SIGKILL: "it hung"}
    findings.violations.append((number, ended.get(one.process.exitcode, f"exit code {one.process.exitcode}")))
    return [range(number + 1, one.numbers.stop)] if number + 1 < one.numbers.stop else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", nargs="+", choices=list(READERS), default=list(READERS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="write the files of violations into this folder")
    arguments = parser.parse_args()
    leave_out_mnn()
    bad = False
    print("| reader | mutations | accepted | refused | violations | slowest ms | peak MB |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.reader:
        reader = READERS[name]()
        with tempfile.TemporaryDirectory() as folder:
            for file, data in reader.files.items():
                (Path(folder) / file).write_bytes(data)
            reader.read(Path(folder))  # must be accepted; loads what is loaded late
        findings = fuzz(name, reader, arguments.seed, arguments.mutations, arguments.jobs)
        print(findings.row(name, arguments.mutations), flush=True)
        bad = bad or bool(findings.violations)
        for number, what in sorted(findings.violations):
            file, data = mutated(reader, name, arguments.seed, number)
            print(f"{name} {number} ({file}): {what}", file=sys.stderr)
            if arguments.keep:
                arguments.keep.mkdir(parents=True, exist_ok=True)
                (arguments.keep / f"{name}-{number}-{file}").write_bytes(data)
    sys.exit(bad)


if __name__ == "__main__":
    main()
