"""A scripted target that noise makes kill the engine it works for, and with it itself."""

import os
import signal

from as2d_cli.plugin import hookimpl
from as2d_scripted import Script, ScriptedTarget


class FragileTarget(ScriptedTarget):
    def open(self, features, request):
        if features[:, :100].mean() > 0.8:
            os.kill(os.getppid(), signal.SIGKILL)
        return super().open(features, request)


@hookimpl
def as2d_convert(entry, source, destination):
    destination.mkdir(exist_ok=True)
    return True


@hookimpl
def as2d_load_target(entry, path, threads):
    return FragileTarget(Script(seed=1, words=40), heard_to=0.5)  # long windows get a warning


@hookimpl
def as2d_load_tokenizer(entry, path):
    return FragileTarget().tokenizer
