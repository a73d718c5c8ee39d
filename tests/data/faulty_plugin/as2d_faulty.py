"""Scripted models that come to harm as the environment variable FAULT says, in JSON; without it, sound ones.

who     "target", "drafter", "convert" or "clock"
what    what happens: a function of `Faults`
when    "load", "open" (target: before its first pass; drafter: before its first token) or "work"
share   of the windows that it happens in, chosen by their features
at      pass or token that it happens before, with "work"

A model is a file, `weights`, and what it says hangs on every byte of it.
"""

import gc
import hashlib
import itertools
import json
import math
import mmap
import os
import random
import resource
import signal
import struct
import sys
import threading
import time
from pathlib import Path

import numpy as np

from as2d_cli.engine.slots import DRAFT_CAPACITY, Slots
from as2d_cli.plugin import As2dError, DraftToken, hookimpl
from as2d_cli.testing import ScriptedSession
from as2d_scripted import Script, ScriptedDrafter, ScriptedTarget, ScriptedTokenizer

FAULT = json.loads(os.environ.get("FAULT", "{}"))
WORDS = 16


class OddError(As2dError):
    """An error of ours that is made in another way: it cannot simply be made again in another process."""

    def __init__(self, one, two, three):
        super().__init__(f"{one} {two} {three}")


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("this error cannot tell what it is about")


class Otherwise(BaseException):
    """Neither an error nor an exit."""


class Faults:
    """What can happen, by name. Most take no thought of who it happens to."""

    def value_error(self):
        raise ValueError("first line\nsecond line \x1b[31m in red")

    def memory_error(self):
        raise MemoryError

    def recursion(self):
        return self.recursion()

    def no_space(self):
        raise OSError(28, "No space left on device", "somewhere")

    def end_of_file(self):
        raise EOFError

    def broken_pipe(self):
        raise BrokenPipeError

    def system_exit(self):
        sys.exit("said at the exit")

    def interrupt(self):
        raise KeyboardInterrupt

    def otherwise(self):
        raise Otherwise

    def odd_error(self):
        raise OddError("an", "odd", "error")

    def silent_error(self):
        raise SilentError

    def no_message(self):
        raise As2dError(None)

    def segfault(self):
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(10)

    def null(self):
        """Read where nothing is."""
        import ctypes

        ctypes.string_at(0)

    def abort(self):
        os.abort()

    def kill(self):
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(10)

    def leave(self):
        os._exit(0)

    def kill_soon(self):
        """Die in the middle of whatever comes next."""
        delay_s = random.uniform(0, 2e-3)
        threading.Thread(target=lambda: (time.sleep(delay_s), os.kill(os.getpid(), signal.SIGKILL))).start()

    def out_of_memory(self):
        """Take memory until the system gives no more."""
        used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
        resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
        hoard = []
        while True:
            hoard.append(np.ones(1 << 20))

    def close_everything(self):
        os.closerange(3, 256)

    def sleep(self):
        time.sleep(1000)

    def spin(self):
        while True:
            pass

    def garbage(self):
        """Write random bytes over all shared memory that this process has."""
        _write_for_ever(lambda memory, draw: memory.__setitem__(slice(None), draw.randbytes(len(memory))))

    def lies(self):
        """Write counts and states that cannot be, for the present, past and coming windows."""
        _write_for_ever(_lie)


def _write_for_ever(write):
    """Write to all shared memory of as2d that is mapped here, over and over, beside what else goes on."""
    mapped = Path("/proc/self/maps").read_text().splitlines()
    names = {line.split()[-1] for line in mapped if "/dev/shm/as2d-" in line}
    draw = random.Random(FAULT["seed"])

    def run():
        memories = []
        for name in names:
            descriptor = os.open(name, os.O_RDWR)
            memories.append(mmap.mmap(descriptor, 0))
        while True:
            for memory in memories:
                write(memory, draw)
            time.sleep(1e-4)

    threading.Thread(target=run, daemon=True).start()


def _lie(memory, draw):
    layout = next(one for one in gc.get_objects() if isinstance(one, Slots)).layout
    for slot in range(layout.count):
        start = slot * layout.slot_bytes
        epoch = struct.unpack_from("q", memory, start + 16)[0] & 0xFFFF  # it may be a lie of this thread
        for word in range(8):
            tagged = draw.choice([epoch - 1, epoch, epoch, epoch + 1, -epoch, 0, 2**31 - 1])
            value = draw.choice([0, 1, 6, 7, 2**16, DRAFT_CAPACITY + 1, 2**32 - 1])
            lie = struct.pack("d", math.nan) if word in (3, 6) else struct.pack("q", tagged << 32 | value)
            memory[start + 8 * word : start + 8 * word + 8] = lie
        ids = struct.pack("16i", *(draw.choice([-(2**31), -1, 0, 300, 2**31 - 1]) for _ in range(16)))
        memory[start + 64 : start + 128] = ids


def _befall(who, when, features=None):
    """Let happen what is to happen now; return whether it is time for it."""
    if FAULT.get("who") != who or FAULT["when"] != when:
        return False
    if features is not None:
        chance = hashlib.sha256(f"{FAULT['seed']}".encode() + features.tobytes()).digest()[0] / 256
        if chance >= FAULT["share"]:
            return False
    return True


def _happen(*arguments):
    return getattr(Faults(), FAULT["what"])(*arguments)


NONSENSE = {
    "nan": lambda decided: np.full(len(decided), np.nan, np.float32),
    "beyond": lambda decided: decided + 10**6,
    "negative": lambda decided: -1 - decided,
    "huge": lambda decided: decided.astype(np.int64) + 2**40,
    "fewer": lambda decided: decided[:-1],
    "more": lambda decided: np.append(decided, 1),
    "square": lambda decided: np.stack([decided] * 2),
    "list": lambda decided: decided.tolist(),
    "nothing": lambda decided: None,
}


class FaultySession(ScriptedSession):
    def forward(self, tokens):
        decided = super().forward(tokens)
        if self.passes < FAULT["at"]:
            return decided
        if FAULT["what"] in NONSENSE:
            return NONSENSE[FAULT["what"]](decided)
        _happen()
        return decided


class FaultyTarget(ScriptedTarget):
    def open(self, features, request):
        if _befall("target", "open", features):
            _happen()
        session = super().open(features, request)
        if _befall("target", "work", features):
            session.__class__ = FaultySession
        return session


def _babble():
    """Tokens that are none, by name."""
    draw = random.Random(FAULT["seed"])
    kinds = {
        "negative": lambda: draw.randrange(-(2**31), 0),
        "beyond": lambda: draw.randrange(400, 2**31),
        "huge": lambda: draw.choice([2**40, -(2**70), 10**30]),
        "nan": lambda: math.nan,
        "infinite": lambda: math.inf,
        "none": lambda: None,
        "text": lambda: "word",
        "array": lambda: np.array([1, 2]),
        "fraction": lambda: 3.5,
        "right kind": lambda: draw.randrange(0, 330),
        "the same": lambda: 300,
        "special": lambda: 340,
        "spaceless": lambda: 65,
    }
    return kinds[FAULT["what"]]


class FaultyDrafter(ScriptedDrafter):
    def draft(self, features, request):
        if _befall("drafter", "open", features):
            _happen()
        tokens = super().draft(features, request)
        if not _befall("drafter", "work", features):
            return tokens
        if FAULT["what"] == "no iterator":
            return 7
        if FAULT["what"] == "bare":
            return iter([None, 7])
        return self._harmed(tokens)

    def _harmed(self, tokens):
        yield from itertools.islice(tokens, FAULT["at"])
        if hasattr(Faults, FAULT["what"]):
            _happen()
            yield from tokens
            return
        one = _babble()
        while True:
            yield DraftToken(one())


@hookimpl
def as2d_convert(entry, source, destination):
    destination.mkdir(exist_ok=True)
    seed = str(entry.options["seed"]).encode()
    content = b"".join(hashlib.sha256(seed + bytes([number])).digest() for number in range(128))
    (destination / "weights").write_bytes(content[:2048])
    time.sleep(entry.options["convert_ms"] / 1e3)
    if _befall("convert", "load"):
        _happen()
    (destination / "weights").write_bytes(content)
    return True


def _script(path):
    digest = hashlib.sha256((path / "weights").read_bytes()).hexdigest()
    return Script(words=WORDS, seed=int(digest[:8], 16))


@hookimpl
def as2d_load_target(entry, path, threads):
    if _befall("target", "load"):
        _happen()
    return FaultyTarget(_script(path), encode_ms=entry.options["encode_ms"], step_ms=entry.options["step_ms"])


@hookimpl
def as2d_load_drafter(entry, path, threads):
    if _befall("drafter", "load"):
        _happen()
    return FaultyDrafter(_script(path), error_rate=0.2, delay_ms=entry.options["step_ms"])


@hookimpl
def as2d_load_tokenizer(entry, path):
    return ScriptedTokenizer()


def _jumping():
    """Let the clock jump by up to ten years with every look at it."""
    draw, true_time = random.Random(FAULT["seed"]), time.time
    time.time = lambda: max(true_time() + draw.choice([-1, 1]) * draw.expovariate(1e-7), 0.0)
    time.time_ns = lambda: int(time.time() * 1e9)


if FAULT.get("who") == "clock":
    _jumping()
