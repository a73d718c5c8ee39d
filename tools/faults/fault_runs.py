"""Runs of the real command that something happens to, and what must hold of each of them."""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

TESTS = Path(__file__).parents[2] / "tests"
AS2D = Path(sys.executable).with_name("as2d")
PLUGIN = TESTS / "data" / "faulty_plugin"
SHARED_MEMORY = Path("/dev/shm")
FORMATS = ("txt", "srt", "json")
PATIENCE_S = 100.0
"""After which a run is taken to hang."""
ENDING_S = 5.0
"""How long the processes of a run may outlive the main one."""

_OURS = r"(as2d|hint): \S|(converting|waiting for) "
"""How each line of ours on standard error begins."""
_SECONDS = {"a": 1.0, "b": 31.0, "c": 2.0, "d": 1.5, "e": 1.0, "f": 3.0}  # b has two windows
_MODELS = """schema = 1
default_pair = "pair"
pairs.pair = {target = "speaker", drafter = "hearer"}
"""
_MODEL = """[models.%s]
plugin = "faulty"
role = "any"
source = {kind = "none"}
options = {seed = 1, convert_ms = 100, encode_ms = %.1f, step_ms = %.1f}
"""


@dataclass(frozen=True)
class Batch:
    """Inputs, models, and what a run gives that nobody disturbs."""

    root: Path
    environment: dict[str, str]
    talks: Path
    outputs: dict[str, bytes]
    texts: bytes
    seconds: float
    """How long it takes."""


def scripted_batch(root: Path) -> Batch:
    """Make a batch of six files for scripted models, which take about a second."""
    talks = root / "talks"
    talks.mkdir()
    speech, _ = soundfile.read(TESTS / "data" / "jfk.flac", dtype="float32")
    for name, seconds in _SECONDS.items():
        n_samples = int(seconds * 16000)
        noise = np.random.default_rng(zlib.crc32(name.encode())).normal(0, 0.01, n_samples)
        soundfile.write(talks / f"{name}.wav", (np.resize(speech, n_samples) + noise).clip(-1, 1), 16000)
    registry = root / "models.toml"
    registry.write_text(_MODELS + _MODEL % ("speaker", 40.0, 2.0) + _MODEL % ("hearer", 0.0, 0.5))
    environment = {"AS2D_MODELS": str(registry), "AS2D_DRAFTER": "hearer"}
    return _undisturbed(root, talks, environment, None)


def real_batch(root: Path) -> Batch:
    """Make a batch for the shipped pair of Whisper models, which must be in the cache."""
    talks = root / "talks"
    talks.mkdir()
    for name in ("LJ001-0002.flac", "LJ001-0008.flac", "jfk.flac"):
        shutil.copy(TESTS / "data" / name, talks)
    models = Path(os.environ.get("AS2D_CACHE_DIR", "~/.cache/as2d")).expanduser() / "models"
    return _undisturbed(root, talks, {"AS2D_DRAFTER": "whisper-tiny.en", "AS2D_LANGUAGE": "en"}, models)


def _undisturbed(root: Path, talks: Path, environment: dict[str, str], models: Path | None) -> Batch:
    (root / "cache").mkdir()
    if models is not None:
        (root / "cache" / "models").symlink_to(models)
    draft = Batch(root, environment, talks, {}, b"", 5.0)
    for _ in range(2):  # the first converts the models, the second is timed
        run = Run(draft, root / "undisturbed", random.Random(0))
        began = time.monotonic()
        run.start()
        if run.wait() != 0:
            raise RuntimeError(run.said())
        seconds = time.monotonic() - began
        outputs, texts = run.outputs(), run.stdout.read_bytes()
        if models is None:
            shutil.copytree(run.cache / "models", root / "cache" / "models", dirs_exist_ok=True)
        run.close()
    return Batch(root, environment, talks, outputs, texts, seconds)


class Run:
    """A run in a folder of its own. What is found to be against the promise is in `violations`."""

    def __init__(self, batch: Batch, folder: Path, draw: random.Random, *, cold: bool = False) -> None:
        """With `cold`, no model is in the cache yet."""
        self.batch, self.folder, self.draw = batch, folder, draw
        self.out, self.cache = folder / "out", folder / "cache"
        self.stdout, self.stderr = folder / "stdout", folder / "stderr"
        self.violations: list[str] = []
        self.happened: list[str] = []
        """What was done to it, for whoever looks into a violation."""
        self.fault: dict[str, Any] = {}
        self.pids: list[int] = []
        self.was_killed = False
        """Whether the main process was, so that nobody is there to keep order on stderr."""
        self.process: subprocess.Popen[bytes] | None = None
        self._mounts: list[Path] = []
        shutil.copytree(batch.root / "cache", self.cache, symlinks=True)
        if cold:
            shutil.rmtree(self.cache)
        self.out.mkdir()

    # --- what can be done to it ---

    def start(
        self,
        *options: str,
        prefix: Sequence[str] = (),
        sources: Sequence[str] | None = None,
        **streams: Any,
    ) -> subprocess.Popen[bytes]:
        """Start the command in a process group of its own."""
        command = [*prefix, str(AS2D), "transcribe", *(sources or [str(self.batch.talks)])]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AS2D_")}
        environment |= {"AS2D_CONFIG": "", "AS2D_CACHE_DIR": str(self.cache), **self.batch.environment}
        environment["FAULT_RUN"] = str(self.folder)
        environment["OMP_NUM_THREADS"] = "1"  # numpy's threads: its waiting would take a third of the time
        environment["PYTHONPATH"] = os.pathsep.join([str(PLUGIN), os.environ.get("PYTHONPATH", "")])
        if self.fault:
            environment["FAULT"] = json.dumps(self.fault)
        with self.stdout.open("wb") as out, self.stderr.open("wb") as err:
            given = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, **streams}
            self.process = subprocess.Popen(
                [*command, "-o", str(self.out), "-f", ",".join(FORMATS), *options],
                env=environment,
                start_new_session=True,
                **given,
            )
        self.pids.append(self.process.pid)
        return self.process

    def mount(self, place: Path, options: str) -> None:
        """Lay a small file system of its own over a folder, or give the one there other options."""
        command = ["mount", "-t", "tmpfs", "-o", options, "as2d-faults", place]
        if place in self._mounts:
            command = ["mount", "-o", f"remount,{options}", place]
        end = time.monotonic() + ENDING_S
        while subprocess.run(command, check=time.monotonic() > end, capture_output=True).returncode:
            time.sleep(0.01)  # as long as a file in it is open to be written
        self.happened.append(f"{place.name}: {options}")
        if place not in self._mounts:
            self._mounts.append(place)

    def close(self) -> None:
        """Remove all that is left of it."""
        for place in self._mounts:
            subprocess.run(["umount", "-l", place], check=True)
        shutil.rmtree(self.folder)

    def suffer(self, who: str, what: str, when: str = "work", *, share: float | None = None) -> None:
        """Let the plugin do something when the run is started; see as2d_faulty."""
        self.fault = {
            "who": who,
            "what": what,
            "when": when,
            "share": self.draw.choice([0.2, 0.5, 1.0]) if share is None else share,
            "at": self.draw.choice([1, 2, 5, 9]),
            "seed": self.draw.randrange(1000),
        }
        self.happened.append(json.dumps(self.fault))

    def pause(self, least: float = 0.0, most: float = 1.1) -> None:
        """Let some of the time pass that an undisturbed run takes."""
        share = self.draw.uniform(least, most)
        self.happened.append(f"after {share:.2f} of the time")
        time.sleep(share * self.batch.seconds)

    def signal(self, number: signal.Signals, process: int | None = None) -> None:
        """Send a signal to a process, or to the whole group."""
        assert self.process is not None
        self.happened.append(f"{number.name} to {process or 'all'}")
        with suppress(ProcessLookupError):
            if process is None:
                os.killpg(self.process.pid, number)
            else:
                os.kill(process, number)
        if number == signal.SIGKILL and process in {None, self.process.pid}:
            self.was_killed = True

    def workers(self) -> list[int]:
        """Return the processes that the main one has started of itself, the oldest first."""
        assert self.process is not None
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        with suppress(OSError):
            children = [int(pid) for pid in listed.read_text().split()]
            return [pid for pid in children if b"spawn_main" in _bytes(pid, "cmdline")]  # as they were born
        return []

    def worker(self, which: int) -> int:
        """Return the target's (0) or the drafter's (1) process, waiting for it; else the main one."""
        assert self.process is not None
        while self.process.poll() is None:
            if len(found := self.workers()) > which:
                return found[which]
            time.sleep(0.01)
        return self.process.pid

    # --- what must hold of it ---

    def wait(self) -> int:
        """Wait for its end; one that takes too long is ended, and that is a violation."""
        assert self.process is not None
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.violations.append(f"hangs: not over after {PATIENCE_S:.0f} s")
            os.killpg(self.process.pid, signal.SIGKILL)
            self.was_killed = True
            return self.process.wait()

    def ends(self, codes: Collection[int], says: str = "") -> None:
        """Check how it ends: with one of these exit codes, and with this message unless all is done."""
        code = self.wait()
        said = self.said()
        self.happened.append(f"exit code {code}")
        if code not in codes:
            self.violations.append(f"exit code {code}, expected one of {sorted(codes)}")
        if code > 0 and says and not re.search(says, said):
            self.violations.append(f"does not say {says!r}")
        self._check_messages(said)
        self._check_left_over()
        self._check_outputs(complete=code == 0)

    def said(self) -> str:
        """Return what is on standard error."""
        return self.stderr.read_text(encoding="utf-8", errors="replace")

    def outputs(self) -> dict[str, bytes]:
        """Return the finished files by name. What drafted is left out: it says nothing about the text."""
        return {
            path.name: re.sub(rb'"drafter": [^\n]*', b"", path.read_bytes())
            for path in self.out.glob("*")
            if not path.name.startswith(".")
        }

    def completes(self) -> None:
        """Check that a rerun does what is left to do, and nothing else."""
        before = self._identities()
        self.fault, self.was_killed = {}, False
        self.start()
        self.ends({0})
        if [name for name, one in before.items() if self._identities().get(name) != one]:
            self.violations.append("a finished file was written again")
        if parts := [path.name for place in (self.out, self.cache) for path in place.rglob("*.part")]:
            self.violations.append(f"left behind: {parts}")
        if memory := self._memory():
            self.violations.append(f"shared memory left behind: {memory}")

    def _check_messages(self, said: str) -> None:
        if "Traceback" in said and not (self.was_killed and "pickle.load(from_parent)" in said):
            self.violations.append("a traceback is shown")
        odd = [line for line in said.splitlines() if not re.match(_OURS, line)]
        if odd and not self.was_killed:
            self.violations.append(f"says {odd[0]!r}")

    def _check_left_over(self) -> None:
        end = time.monotonic() + ENDING_S
        while alive := self._processes():
            if time.monotonic() > end:
                self.violations.append(f"{len(alive)} processes live on")
                for pid in alive:
                    os.kill(pid, signal.SIGKILL)
                break
            time.sleep(0.02)
        if not self.was_killed and (memory := self._memory()):
            self.violations.append(f"shared memory left: {memory}")

    def _check_outputs(self, *, complete: bool) -> None:
        found = self.outputs()
        wrong = [name for name, content in found.items() if content != self.batch.outputs.get(name)]
        if wrong:
            self.violations.append(f"not as without disturbance: {wrong}")
        if complete and found.keys() != self.batch.outputs.keys():
            self.violations.append(f"missing: {sorted(self.batch.outputs.keys() - found.keys())}")

    def _processes(self) -> list[int]:
        """Return the processes that belong to this run, wherever they have gone."""
        mark = b"FAULT_RUN=" + os.fsencode(self.folder) + b"\0"
        numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
        return [pid for pid in numbers if mark in _bytes(pid, "environ")]

    def _memory(self) -> list[str]:
        ours = {f"as2d-{pid}-" for pid in self.pids}
        names = [path.name for path in SHARED_MEMORY.glob("as2d-*")]
        return [name for name in names if any(name.startswith(one) for one in ours)]

    def _identities(self) -> dict[str, tuple[int, int]]:
        found = {path.name: path.stat() for path in self.out.glob("[!.]*")}
        return {name: (status.st_ino, status.st_mtime_ns) for name, status in found.items()}


@contextmanager
def held(lock: Path) -> Iterator[None]:
    """Hold a lock as another process would."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _bytes(process: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{process}/{name}").read_bytes()
    except OSError:
        return b""
