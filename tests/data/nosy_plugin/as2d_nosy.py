"""A target that reads standard input and writes to standard output, which are not its own."""

import os

from as2d_cli.plugin import hookimpl
from as2d_scripted import Script, ScriptedTarget


@hookimpl
def as2d_convert(entry, source, destination):
    os.read(0, 100)
    destination.mkdir(exist_ok=True)
    return True


@hookimpl
def as2d_load_target(entry, path, threads):
    os.read(0, 100)
    os.write(1, b"chatter")
    return ScriptedTarget(Script(text="all of it"))


@hookimpl
def as2d_load_tokenizer(entry, path):
    return ScriptedTarget().tokenizer
