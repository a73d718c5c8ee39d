from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from as2d_cli.bench.modes import PLAIN, Mode
from as2d_cli.bench.run.clips import BenchWindow, Clip
from as2d_cli.bench.run.decoders import DecodedBlock
from as2d_cli.bench.run.rotation import Rotation
from as2d_cli.domain.errors import DecodeError
from as2d_cli.domain.types import DecodeStats, Step, Window, WindowResult, WindowTrace
from as2d_cli.engine.comparison import BLOCK

DRAFTED = Mode("as2d-7", "as2d", "hearer", 7)
SERIAL = Mode("sd-2", "serial", "hearer")


@dataclass
class Stand:
    """Keeps what it was asked for; fails from its call number `fails_at` on."""

    calls: list = field(default_factory=list)
    fails_at: int = 1000

    def decode(self, mode, tasks):
        self.calls.append((mode.name, len(tasks)))
        if len(self.calls) > self.fails_at:
            raise DecodeError("as asked")
        trace = WindowTrace(10.0, (Step((1,), 2, 1, 3, 4.0, 10.5),), 99, 0.25, (1, 2), (9.5, 10.25), 9.0)
        stats = DecodeStats(encode_s=0.5, verify_s=0.25, control_s=0.125, wall_s=1.0, drafted=2)
        return DecodedBlock([WindowResult(" x", (1,), "en", stats=stats, trace=trace) for _ in tasks], 0.5)

    def process_ids(self, mode):
        return ()


def windows(count):
    clip = Clip(Path("a.wav"))
    part = Window(0, 32000, np.zeros(16000, np.float32))
    return [BenchWindow(index, 0, clip, part, None) for index in range(count)]


def rotation(decoders, count=BLOCK + 1, repeats=2, notes=None, progress=None):
    modes = [PLAIN, DRAFTED, SERIAL]
    return Rotation(
        modes,
        dict(zip([mode.label for mode in modes], decoders, strict=True)),
        windows(count),
        repeats,
        (notes if notes is not None else []).append,
        progress or (lambda done, total: None),
    )


def test_all_modes_meet_the_same_blocks_in_turn_after_an_uncounted_warm_up():
    stand, told = Stand(), []
    trials = list(rotation([stand] * 3, progress=lambda done, total: told.append((done, total))).run())
    order = [name for name, _ in stand.calls]
    assert stand.calls[:3] == [("target-only", 2), ("as2d-7", 2), ("sd-2", 2)]
    assert order[3:6] == ["target-only", "as2d-7", "sd-2"]
    assert order[6:9] == ["as2d-7", "sd-2", "target-only"]
    assert order[9:12] == ["sd-2", "target-only", "as2d-7"]
    assert [size for _, size in stand.calls[3:]] == [BLOCK] * 3 + [1] * 3 + [BLOCK] * 3 + [1] * 3
    assert len(trials) == 2 * 3 * (BLOCK + 1)
    assert {(trial.mode, trial.window, trial.repeat) for trial in trials} == {
        (mode.label, window, repeat)
        for mode in (PLAIN, DRAFTED, SERIAL)
        for window in range(BLOCK + 1)
        for repeat in range(2)
    }
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_trial_holds_the_time_line_relative_to_the_window():
    trial = next(rotation([Stand()] * 3).run())
    assert (trial.block_wall_s, trial.wall_s, trial.draft_s, trial.began_s) == (0.5, 1.0, 0.25, 10.0)
    assert (trial.start_s, trial.audio_s, trial.file, trial.max_tokens) == (2.0, 1.0, "a.wav", 99)
    assert (trial.published_ms, trial.draft_began_ms) == ((-500.0, 250.0), -1000.0)
    (step,) = trial.steps
    assert (step.committed, step.proposed, step.accepted, step.available) == (1, 2, 1, 3)
    assert (step.began_ms, step.ms) == (500.0, 4.0)


@pytest.mark.parametrize("fails_at", [0, 2])
def test_a_mode_that_fails_is_left_out_from_there_on_with_a_note(fails_at):
    notes = []
    trials = list(rotation([Stand(), Stand(), Stand(fails_at=fails_at)], notes=notes).run())
    assert sum(trial.mode == SERIAL.label for trial in trials) == (0 if fails_at == 0 else BLOCK)
    assert sum(trial.mode == PLAIN.label for trial in trials) == 2 * (BLOCK + 1)
    assert notes == ["sd-2 hearer failed and is left out from there on: as asked"]


def test_without_target_only_there_is_nothing_to_compare_with():
    with pytest.raises(DecodeError, match="as asked"):
        list(rotation([Stand(fails_at=0), Stand(), Stand()]).run())
