"""A plugin whose models are text files; the option `mode` makes its conversion go wrong, or wait."""

import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from as2d_cli.plugin import ModelError, hookimpl

CONVERTER_VERSION = "7"
LOADING_OPTIONS = frozenset({"voice"})


@hookimpl
def as2d_convert(entry, source, destination):
    os.write(1, b"chatter of a native converter\n")
    mode = entry.options.get("mode", "good")
    if mode == "refuse":
        return None
    if mode == "nothing":
        return True
    if mode == "bad":
        raise ModelError("the weights are odd", "use other weights")
    if mode == "bug":
        raise ZeroDivisionError("a bug of the plugin")
    if mode == "crash":
        os.kill(os.getpid(), signal.SIGTERM)
    (destination / "half.bin").write_bytes(b"half")
    if mode == "leave":
        os._exit(0)
    if mode == "slow":
        _wait_for(Path(entry.options["until"]))
    words = [path.read_text() for path in sorted(source.glob("*.txt"))]
    (destination / "half.bin").rename(destination / "whole.bin")
    (destination / "pid").write_text(str(os.getpid()))
    (destination / "inner").mkdir()
    (destination / "inner" / "words").write_text(" ".join(words).upper())
    return True


def _wait_for(path):
    end = time.monotonic() + 120
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.02)


@hookimpl
def as2d_load_tokenizer(entry, path):
    if entry.options.get("mode") == "bug":
        raise ZeroDivisionError("a bug of the plugin")
    if entry.options.get("mode") == "loud":
        sys.stdout.write("loading\n")
    if entry.options.get("mode") == "odd":
        return SimpleNamespace(encode=list)
    return SimpleNamespace(fingerprint=f"{entry.name} {path}", encode=list, decode_bytes=bytes)
