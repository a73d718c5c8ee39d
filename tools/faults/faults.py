"""Lets all kinds of things happen to runs of the real command, and counts broken promises.

    python tools/faults/faults.py [--runs 500] [--real 20] [--seed N] [--jobs 2] [-o faults.jsonl]

With -o, the table is of all runs in the file, and none is made twice: an interrupted count can be taken up,
and another seed added. Linux only; kinds that need a file system of their own are left out where mounting
one is not allowed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from fault_kinds import KINDS, Kind
from fault_runs import Batch, Run, real_batch, scripted_batch

_UNSHARED = "AS2D_FAULTS_UNSHARED"
_NAMESPACES = (["unshare", "-m"], ["unshare", "-r", "-m"])


@dataclass(frozen=True)
class Record:
    """What became of one run."""

    id: str
    kind: str
    happened: list[str]
    violations: list[str]
    seconds: float
    said: str = ""
    """What it said on stderr, if that is of interest."""


def main() -> int:
    """Make the runs and print the table; return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="runs with scripted models")
    parser.add_argument("--real", type=int, default=0, help="runs with the shipped pair of Whisper models")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side")
    parser.add_argument("--only", default="", help="kinds whose name has this in it")
    parser.add_argument("-o", "--output", type=Path, help="keep records here, as JSON lines")
    asked = parser.parse_args()
    can_mount = bool(os.environ.get(_UNSHARED))
    kinds = [one for one in KINDS if asked.only in one.name and (can_mount or not one.mounts)]
    left_out = [one.name for one in KINDS if one.mounts and not can_mount]
    records = _made(asked, kinds)
    print(_table(kinds, records))
    if left_out:
        print(f"\nNot run, as no file system can be mounted here: {'; '.join(left_out)}.")
    for record in records:
        if record.violations:
            print(f"\n{record.id}: {record.kind}\n  {record.happened}\n  {record.violations}\n{record.said}")
    return int(any(record.violations for record in records))


def _made(asked: argparse.Namespace, kinds: list[Kind]) -> list[Record]:
    """Make the runs that the file does not have; return the records of all."""
    known = _known(asked.output)
    planned = {f"scripted {asked.seed}-{number}": one for number, one in _spread(kinds, asked.runs)}
    real = [one for one in kinds if one.real]
    planned |= {f"real {asked.seed}-{number}": one for number, one in _spread(real, asked.real)}
    todo = {id: one for id, one in planned.items() if id not in known}
    with tempfile.TemporaryDirectory(prefix="as2d-faults-") as folder:
        batches = {}
        for name, make in (("scripted", scripted_batch), ("real", real_batch)):
            if any(id.startswith(name) for id in todo):
                (Path(folder) / name).mkdir()
                batches[name] = make(Path(folder) / name)
        with ThreadPoolExecutor(asked.jobs) as pool:
            made = [pool.submit(_record, batches[id.split()[0]], id, one) for id, one in todo.items()]
            try:
                for record in (one.result() for one in as_completed(made)):
                    known[record.id] = record
                    _keep(asked.output, record)
            except BaseException:
                pool.shutdown(cancel_futures=True)  # what is at work comes to its end
                raise
    return list(known.values())


def _spread(kinds: list[Kind], count: int) -> Iterator[tuple[int, Kind]]:
    """Yield `count` numbered runs, spread evenly over the kinds."""
    for number in range(count):
        yield number, kinds[number * len(kinds) // count if count < len(kinds) else number % len(kinds)]


def _record(batch: Batch, id: str, one: Kind) -> Record:
    """Make one run, and the one after it that must complete the batch."""
    began = time.monotonic()
    run = Run(batch, batch.root / id.replace(" ", "-"), random.Random(id), cold=one.cold)
    one.body(run)
    said = run.said()
    run.completes()
    seconds = time.monotonic() - began
    said = said + "-- then --\n" + run.said() if run.violations else ""
    run.close()
    return Record(id, one.name, run.happened, run.violations, round(seconds, 2), said)


def _known(path: Path | None) -> dict[str, Record]:
    if path is None or not path.exists():
        return {}
    records = [Record(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return {record.id: record for record in records}


def _keep(path: Path | None, record: Record) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record)) + "\n")
    if record.violations:
        print(f"{record.id}: {record.kind}: {record.violations}", file=sys.stderr, flush=True)


def _table(kinds: Iterable[Kind], records: list[Record]) -> str:
    lines = ["| what happens | runs | promised | broken |", "|---|--:|---|--:|"]
    for one in kinds:
        own = [record for record in records if record.kind == one.name]
        broken = sum(bool(record.violations) for record in own)
        lines.append(f"| {one.name} | {len(own)} | {one.promise} | {broken} |")
    broken = sum(bool(record.violations) for record in records)
    return "\n".join([*lines, f"| all | {len(records)} | | {broken} |"])


def _unshare() -> None:
    """Begin anew where file systems can be mounted that nobody else sees, if that is allowed."""
    for namespace in _NAMESPACES if shutil.which("unshare") and not os.environ.get(_UNSHARED) else ():
        probe = 'mount -t tmpfs none "$0" && umount "$0"'
        tried = subprocess.run([*namespace, "sh", "-c", probe, "/mnt"], check=False, capture_output=True)
        if tried.returncode == 0:
            os.environ[_UNSHARED] = "1"
            os.execvp(namespace[0], [*namespace, sys.executable, *sys.argv])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _unshare()
    sys.exit(main())
