from pathlib import Path

import pytest

from as2d_cli.engine.engine import EngineSettings
from as2d_cli.engine.messages import ModelRef
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path))


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
