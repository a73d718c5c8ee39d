"""Runs of the real command and the real processes, with scripted models where no real one is needed."""

import json
import os
import signal
import subprocess
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, settings
from typer.testing import CliRunner

from as2d_cli.cli.app import app
from as2d_cli.engine.measure import ROWS, DraftCosts, PairCosts, TargetCosts

collect_ignore = ["fixtures"]
"""Packages with tests of their own."""
AS2D = Path(sys.executable).with_name("as2d")
SPEECH = Path(__file__).parent / "data" / "jfk.flac"
TARGET = {"seed": 1, "words": 40, "encode_ms": 100.0, "step_ms": 2.0}  # drafts have time to come
DRAFTER = {"seed": 1, "words": 40, "error_rate": 0.1}

# Whether a change passes must hang neither on chance nor on what else the machine does: the same examples in
# every run, however long they take. `--hypothesis-profile=default` draws new ones.
settings.register_profile(
    "as2d", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("as2d")


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    code: int
    out: str
    err: str

    def records(self):
        """Return the objects of JSON lines on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture(scope="session", autouse=True)
def _signals_not_ignored():
    """Whoever starts the tests in the background or by nohup has children ignore what they are to heed."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def _away_from_the_checkout(tmp_path_factory):
    """Children that look for modules where they start find what is installed, not the checkout's."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("away"))
    yield
    os.chdir(before)


@pytest.fixture(scope="session")
def scripted_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("scripted-cache")


@pytest.fixture(autouse=True)
def _no_settings_of_whoever_runs_the_tests(monkeypatch):
    for name in list(os.environ):
        if name.startswith("AS2D_") and name not in {"AS2D_CACHE_DIR", "AS2D_MODELS"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("AS2D_CONFIG", "")


@pytest.fixture
def scripted(tmp_path, monkeypatch, scripted_cache):
    """Make a scripted pair the default; called again, one with other options."""

    def choose(target=None, drafter=None, plugin="scripted"):
        lines = [
            "schema = 1",
            'default_pair = "pair"',
            'pairs.pair = { target = "speaker", drafter = "hearer" }',
        ]
        for name, module, options in (
            ("speaker", plugin, TARGET | (target or {})),
            ("hearer", "scripted", DRAFTER | (drafter or {})),
        ):
            lines += [
                f"[models.{name}]",
                f'plugin = "{module}"',
                'role = "any"',
                'source = { kind = "none" }',
            ]
            lines += [
                f"options.{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in options.items()
            ]
        registry = tmp_path / "models.toml"
        registry.write_text("\n".join(lines), encoding="utf-8")
        monkeypatch.setenv("AS2D_MODELS", str(registry))
        monkeypatch.setenv("AS2D_DRAFTER", "hearer")  # a choice by measurement would vary with the machine
        monkeypatch.setenv("AS2D_CACHE_DIR", str(scripted_cache))

    choose()
    return choose


@pytest.fixture
def pair_costs():
    """Make the costs of a pair of models, each slowing the other by `stretch` while both are at work."""
    stairs = {rows: 4.0 + 0.9 * rows for rows in ROWS}

    def make(encode_ms, token_ms, stretch=1.0, decode_threads=2):
        def target(factor):
            table = {rows: ms * factor for rows, ms in stairs.items()}
            return TargetCosts(600.0 * factor, table, table, row_invariant=True, peak_bytes=400_000_000)

        def drafter(factor):
            return DraftCosts(encode_ms * factor, token_ms * factor, peak_bytes=300_000_000)

        return PairCosts(
            target(1.0), target(stretch), drafter(1.0), drafter(stretch), decode_threads=decode_threads
        )

    return make


@pytest.fixture
def sound(tmp_path):
    """Write speech with some noise as a sound file; its name decides what the scripted models hear in it."""
    speech, _ = soundfile.read(SPEECH, dtype="float32")

    def write(name="a.wav", seconds=2.0):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        n_samples = int(seconds * 16000)
        noise = np.random.default_rng(zlib.crc32(name.encode())).normal(0, 0.01, n_samples)
        soundfile.write(path, (np.resize(speech, n_samples) + noise).clip(-1, 1), 16000, format="WAV")
        return path

    return write


@pytest.fixture
def as2d(tmp_path):
    """Run the installed command to its end, as a shell would."""

    def run(*arguments, **environment):
        ended = subprocess.run(
            [AS2D, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=tmp_path,
            env=os.environ | environment,
            timeout=500,
            check=False,
        )
        return Finished(ended.returncode, ended.stdout.decode("utf-8"), ended.stderr.decode("utf-8"))

    return run


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Run a command that is refused before any work, in this process: no interpreter has to start for it."""

    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        ended = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="as2d")
        if not isinstance(ended.exception, SystemExit):
            raise ended.exception or AssertionError("it was not refused")
        return Finished(ended.exit_code, ended.stdout, ended.stderr)

    return run
