"""A target that breaks its contract: what it decides depends on how many rows run together."""

import numpy as np

from as2d_cli.plugin import hookimpl
from as2d_cli.testing import ScriptedSession
from as2d_scripted import Script, ScriptedTarget


class LyingSession(ScriptedSession):
    def forward(self, tokens):
        decided = super().forward(tokens)
        return np.where(decided == ord("x"), ord("y"), decided) if len(tokens) > 1 else decided


class LyingTarget(ScriptedTarget):
    def open(self, features, request):
        session = super().open(features, request)
        session.__class__ = LyingSession
        return session


@hookimpl
def as2d_convert(entry, source, destination):
    destination.mkdir(exist_ok=True)
    return True


@hookimpl
def as2d_load_target(entry, path, threads):
    # Slow enough that drafts are there when they are looked for.
    return LyingTarget(Script(text="all of it is in the box"), max_tokens=16, encode_ms=300.0, step_ms=10.0)


@hookimpl
def as2d_load_tokenizer(entry, path):
    return ScriptedTarget().tokenizer
