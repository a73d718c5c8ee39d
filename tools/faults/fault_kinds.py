"""What can happen to a run, and what is promised then. Each kind is a function that does it to one run."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from fault_runs import Run, held

Body: TypeAlias = Callable[[Run], None]

_DEATHS = ("segfault", "null", "abort", "kill", "leave")
_ERRORS = (
    *("value_error", "memory_error", "recursion", "no_space", "end_of_file", "broken_pipe", "system_exit"),
    *("interrupt", "otherwise", "odd_error", "silent_error", "no_message"),
)
_BABBLE = ("negative", "beyond", "huge", "none", "text", "array", "fraction", "no iterator", "bare")
_DONE = "all done, exit code 0"
_FAILS = "the files in work fail with a message, exit code 1; 3 if it happens every time"
_STOPS = "what is finished stays, nothing half-made"
_IN_NAMESPACE = ["unshare", "-m", "sh", "-c"]


@dataclass(frozen=True)
class Kind:
    """A row of the table."""

    name: str
    promise: str
    body: Body
    cold: bool = False
    """Whether it begins without a model in the cache."""
    real: bool = False
    """Whether it can happen to real models, too."""
    mounts: bool = False
    """Whether it needs a file system of its own."""


KINDS: list[Kind] = []


def kind(name: str, promise: str, **traits: bool) -> Callable[[Body], Body]:
    """Enter a function as a kind of fault."""

    def enter(body: Body) -> Body:
        KINDS.append(Kind(name, promise, body, **traits))
        return body

    return enter


@kind("drafter killed (kill -9), up to three times", _DONE, real=True)
def drafter_killed(run: Run) -> None:
    run.start()
    main = run.process.pid
    for _ in range(run.draw.choice([1, 1, 2, 3])):
        run.pause(0.0, 0.8)
        drafter = run.worker(1)
        if drafter != main:
            run.signal(signal.SIGKILL, drafter)
    run.ends({0})


@kind("target killed (kill -9)", _FAILS, real=True)
def target_killed(run: Run) -> None:
    run.start()
    run.pause(0.0, 1.0)
    target = run.worker(0)
    if target != run.process.pid:
        run.signal(signal.SIGKILL, target)
    run.ends({0, 1, 3}, r"the target's process was ended by signal 9")


@kind("main process killed (kill -9)", _STOPS, real=True)
def main_killed(run: Run) -> None:
    run.start()
    run.pause()
    run.signal(signal.SIGKILL, run.process.pid)
    run.ends({0, -signal.SIGKILL})


@kind("main process killed while the drafter hangs", _STOPS)
def main_killed_while_drafter_hangs(run: Run) -> None:
    run.suffer("drafter", run.draw.choice(["sleep", "spin"]), share=1.0)
    run.start()
    run.pause()
    run.signal(signal.SIGKILL, run.process.pid)
    run.ends({0, -signal.SIGKILL})


@kind("all processes killed at once (kill -9)", _STOPS, real=True)
def all_killed(run: Run) -> None:
    run.start()
    run.pause()
    run.signal(signal.SIGKILL)
    run.ends({0, -signal.SIGKILL})


@kind("killed (kill -9) while models are converted, main or all", _STOPS, cold=True)
def killed_in_conversion(run: Run) -> None:
    run.start()
    run.pause(0.2, 0.8)
    run.signal(signal.SIGKILL, run.draw.choice([None, run.process.pid]))
    run.ends({0, -signal.SIGKILL})


@kind("drafter hangs: sleeps, computes for ever, or is stopped", _DONE, real=False)
def drafter_hangs(run: Run) -> None:
    how = run.draw.choice(["sleep", "spin", "stop"])
    if how == "stop":
        run.start()
        run.pause(0.0, 0.9)
        drafter = run.worker(1)
        if drafter != run.process.pid:
            run.signal(signal.SIGSTOP, drafter)
    else:
        run.suffer("drafter", how, run.draw.choice(["open", "work"]))
        run.start()
    run.ends({0})


@kind("drafter floods: drafts without end", _DONE)
def drafter_floods(run: Run) -> None:
    run.suffer("drafter", run.draw.choice(["right kind", "the same", "special", "spaceless"]))
    run.start()
    run.ends({0})


@kind("drafter writes garbage for tokens, or no tokens", _DONE)
def drafter_babbles(run: Run) -> None:
    run.suffer("drafter", run.draw.choice(_BABBLE))
    run.start()
    run.ends({0})


@kind("drafter writes NaN or infinity for tokens", _DONE)
def drafter_is_not_a_number(run: Run) -> None:
    run.suffer("drafter", run.draw.choice(["nan", "infinite"]))
    run.start()
    run.ends({0})


@kind("drafter writes random bytes over all memory that it shares", _DONE)
def drafter_overwrites(run: Run) -> None:
    run.suffer("drafter", "garbage")
    run.start()
    run.ends({0})


@kind("drafter writes tokens of other epochs, counts and states that cannot be", _DONE)
def drafter_lies(run: Run) -> None:
    run.suffer("drafter", "lies")
    run.start()
    run.ends({0})


@kind("drafter dies while it publishes", _DONE)
def drafter_dies_publishing(run: Run) -> None:
    run.suffer("drafter", "kill_soon")
    run.start()
    run.ends({0})


@kind("drafter crashes, leaves, or closes its files", _DONE)
def drafter_crashes(run: Run) -> None:
    when = run.draw.choice(["load", "open", "work", "work"])
    run.suffer("drafter", run.draw.choice([*_DEATHS, "close_everything"]), when)
    run.start()
    run.ends({0})


@kind("drafter raises something odd", _DONE)
def drafter_raises(run: Run) -> None:
    run.suffer("drafter", run.draw.choice(_ERRORS), run.draw.choice(["load", "open", "work", "work"]))
    run.start()
    run.ends({0})


@kind("drafter out of memory", _DONE)
def drafter_out_of_memory(run: Run) -> None:
    run.suffer("drafter", "out_of_memory", run.draw.choice(["load", "open", "work"]))
    run.start()
    run.ends({0})


@kind("target out of memory", _FAILS)
def target_out_of_memory(run: Run) -> None:
    run.suffer("target", run.draw.choice(["out_of_memory", "memory_error"]), _target_when(run))
    run.start()
    run.ends({0, 1, 3}, "MemoryError|memory")


@kind("target raises something odd", _FAILS)
def target_raises(run: Run) -> None:
    run.suffer("target", run.draw.choice(_ERRORS), _target_when(run))
    run.start()
    run.ends({0, 1, 3}, r"as2d: .*\w{4}")


@kind("target crashes: segmentation fault, abort, leaves", _FAILS)
def target_crashes(run: Run) -> None:
    run.suffer("target", run.draw.choice([*_DEATHS, "close_everything"]), _target_when(run))
    run.start()
    run.ends({0, 1, 3}, "the target's process")


@kind("target decides NaN, ids that are none, or not for every row", _FAILS)
def target_decides_nonsense(run: Run) -> None:
    what = ["nan", "beyond", "negative", "huge", "fewer", "more", "square", "list", "nothing"]
    run.suffer("target", run.draw.choice(what))
    run.start()
    run.ends({0, 1, 3}, "target")


@kind("conversion of a model raises, crashes or runs out of memory", "a message, exit code 3", cold=True)
def conversion_fails(run: Run) -> None:
    run.suffer("convert", run.draw.choice([*_ERRORS, *_DEATHS, "out_of_memory"]), "load")
    run.start()
    run.ends({3}, r"as2d: error: .*(speaker|faulty)")


@kind("disk full while outputs are written", "the files that do not fit fail, exit code 1", mounts=True)
def disk_full(run: Run) -> None:
    run.mount(run.out, f"size={run.draw.choice([8, 12, 16, 24, 32])}k")
    run.start()
    run.ends({0, 1}, "cannot be written: No space left")
    run.mount(run.out, "size=1m")


@kind("output folder read-only, from the start or all at once", "a message, exit code 1 or 2", mounts=True)
def output_read_only(run: Run) -> None:
    run.mount(run.out, "size=1m")
    if run.draw.random() < 0.3:
        run.mount(run.out, "ro,size=1m")
        run.start()
        run.ends({2}, "Read-only file system")
    else:
        run.start()
        run.pause(0.3, 1.0)
        run.mount(run.out, "ro,size=1m")
        run.ends({0, 1, 2}, "Read-only file system")
    run.mount(run.out, "rw,size=1m")


@kind("cache on a full or read-only disk", "a message, exit code 3, or all done", cold=True, mounts=True)
def cache_full(run: Run) -> None:
    run.cache.mkdir()
    run.mount(run.cache, f"size={run.draw.choice([4, 8, 16, 24, 32, 64])}k")
    if run.draw.random() < 0.3:
        run.mount(run.cache, "ro,size=4k")
    run.start()
    run.ends({0, 3}, "No space left|Read-only")
    run.mount(run.cache, "rw,size=8m")


@kind("standard output or error on a full disk", "a message where one can be, exit code 1; files written")
def streams_full(run: Run) -> None:
    with Path("/dev/full").open("wb") as full:
        if run.draw.random() < 0.5:
            run.start(stdout=full)
            run.ends({1}, "standard output: No space left")
        else:
            run.start(stderr=full)
            run.ends({0})


@kind("cached model damaged: truncated, changed, missing parts", "made again, all done, exit code 0")
def cache_damaged(run: Run) -> None:
    files = [path for path in sorted((run.cache / "models").rglob("*")) if path.is_file()]
    for path in run.draw.sample(files, run.draw.choice([1, 2])):
        how = run.draw.choice(["flip", "flip", "truncate", "empty", "delete", "random", "folder"])
        run.happened.append(f"{how} {path.name}")
        _damage(run, path, how)
    run.start()
    run.ends({0})


@kind("records of earlier runs damaged", "finished files are left alone, the rest is done, exit code 0")
def records_damaged(run: Run) -> None:
    run.start()
    run.pause(0.4, 1.0)
    run.signal(signal.SIGKILL)
    run.ends({0, -signal.SIGKILL})
    for path in sorted((run.cache / "done").rglob("*.json")):
        if run.draw.random() < 0.5:
            _damage(run, path, run.draw.choice(["flip", "truncate", "empty", "delete", "random"]))


@kind("cache locked by another process for a while", "waits and says so; all done, exit code 0", cold=True)
def cache_locked(run: Run) -> None:
    with held(run.cache / "locks" / f"{run.draw.choice(['speaker', 'hearer'])}.lock"):
        run.start()
        time.sleep(run.batch.seconds + 0.5)
        if run.process.poll() is not None:
            run.violations.append("did not wait")
    run.ends({0})


@kind("two runs share one cold cache, one perhaps killed", "both do all; exit code 0", cold=True)
def two_runs(run: Run) -> None:
    other = Run(run.batch, run.folder / "other", run.draw, cold=True)
    other.cache = run.cache
    first, second = (run, other) if run.draw.random() < 0.5 else (other, run)
    first.start()
    run.pause(0.0, 0.6)
    second.start()
    if run.draw.random() < 0.4:
        other.pause(0.0, 0.8)
        other.signal(signal.SIGKILL)
    other.ends({-signal.SIGKILL} if other.was_killed and other.wait() else {0})
    run.violations += other.violations
    run.happened += [f"other: {one}" for one in other.happened]
    run.ends({0})


@kind("clock jumps by up to years, back and forth", _DONE)
def clock_jumps(run: Run) -> None:
    run.suffer("clock", "", "")
    if run.draw.random() < 0.5:
        moment = run.draw.choice([0, 1, 2**31 + 5, 4e9])
        for path in (run.cache / "models").rglob("*"):
            os.utime(path, (moment, moment))
    run.start()
    run.ends({0})


@kind("SIGTERM, to main or to all", "the report, what is finished stays, exit code 143", real=True)
def terminated(run: Run) -> None:
    run.start()
    run.pause()
    run.signal(signal.SIGTERM, run.draw.choice([None, run.process.pid]))
    run.ends({0, 143, -signal.SIGTERM}, "as2d: interrupted: |^$")


@kind("SIGINT or SIGHUP to all", "the report, what is finished stays, exit code 130 or 129", real=True)
def interrupted(run: Run) -> None:
    number = run.draw.choice([signal.SIGINT, signal.SIGHUP])
    run.start()
    run.pause(0.3)
    run.signal(number)
    run.ends({0, 128 + number, -number}, "as2d: interrupted: |^$")


@kind("whoever reads standard output stops (SIGPIPE)", "quiet end, exit code 141")
def reader_leaves(run: Run) -> None:
    ours, theirs = os.pipe()
    run.start(*run.draw.choice([(), ("--json",)]), stdout=theirs)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        for _ in range(run.draw.choice([0, 1, 1, 2, 5])):
            pipe.readline()
    run.ends({0, 141})


@kind("whoever reads standard error stops", _DONE)
def listener_leaves(run: Run) -> None:
    ours, theirs = os.pipe()
    run.start("-v", stderr=theirs)
    os.close(theirs)
    run.pause(0.0, 0.5)
    os.close(ours)
    run.ends({0})


@kind("standard input, output or error closed", _DONE)
def streams_closed(run: Run) -> None:
    closed = " ".join(run.draw.sample(["<&-", ">&-", "2>&-"], run.draw.choice([1, 2, 3])))
    run.happened.append(closed)
    run.start(prefix=["sh", "-c", f'exec "$@" {closed}', "sh"])
    run.ends({0})


@kind("standard input that is to be read is closed or empty", "that input fails, exit code 1")
def input_closed(run: Run) -> None:
    prefix = ["sh", "-c", 'exec "$@" <&-', "sh"] if run.draw.random() < 0.5 else []
    run.start(prefix=prefix, sources=["-", str(run.batch.talks)])
    run.ends({1}, "stdin: ")


@kind("/dev/shm full, read-only or absent", "a message, exit code 3", mounts=True)
def no_shared_memory(run: Run) -> None:
    how = run.draw.choice(["size=64k", "size=1m", "ro", "absent"])
    run.happened.append(how)
    script = f"mount -t tmpfs -o {how} none /dev/shm"
    if how == "absent":
        place = run.folder / "dev"
        place.mkdir()
        script = (
            f"mount -t tmpfs none {place} && for one in null zero full random urandom; do touch {place}/$one"
            f" && mount --bind /dev/$one {place}/$one; done && mount --rbind {place} /dev"
        )
    run.start(prefix=[*_IN_NAMESPACE, f'{script} && exec "$@"', "sh"])
    run.ends({3}, "shared memory")


def _target_when(run: Run) -> str:
    return run.draw.choice(["load", "open", "work", "work", "work"])


def _damage(run: Run, path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "delete":
        path.unlink()
    elif how == "folder":
        path.unlink()
        path.mkdir()
    elif how == "flip":
        content[run.draw.randrange(len(content))] ^= 1 << run.draw.randrange(8)
        path.write_bytes(content)
    else:
        keep = {"truncate": run.draw.randrange(len(content)), "empty": 0, "random": 0}[how]
        more = run.draw.randbytes(len(content)) if how == "random" else b""
        path.write_bytes(content[:keep] + more)


def described(run: Run) -> str:
    """Return what was done to a run, on one line."""
    return json.dumps(run.happened)
