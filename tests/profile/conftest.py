import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from as2d_cli.engine.engine import EngineSettings
from as2d_cli.engine.messages import ModelRef
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource
from as2d_cli.profile import choice, trust
from as2d_cli.system.device import usable_cpus


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path))


@pytest.fixture
def undisturbed(monkeypatch):
    """Have every measurement trusted: what else this machine does is not to decide a test."""
    for judge in ("load_flaw", "target_flaw", "encoder_flaw", "costs_flaw"):
        monkeypatch.setattr(trust, judge, lambda *_: None)
    monkeypatch.setattr(choice, "is_quiet", lambda: True)


@pytest.fixture
def busy_processors():
    """Keep all processors busy that may be used, within a `with` block."""

    @contextmanager
    def busy():
        loop = [sys.executable, "-c", "while True: pass"]
        processes = [subprocess.Popen(loop) for _ in range(usable_cpus())]
        try:
            yield
        finally:
            for process in processes:
                process.kill()
                process.wait()

    return busy()


@pytest.fixture
def settings():
    """Make settings for scripted models; without options for the drafter there is none."""

    def model(name, options):
        entry = ModelEntry(name, "scripted", "any", NoSource(), options={"seed": 1, "words": 40} | options)
        return ModelRef(entry, Path("a1b2"), 1)

    def make(target=None, drafter=None):
        return EngineSettings(
            model("speaker", target or {}), None if drafter is None else model("hearer", drafter)
        )

    return make
