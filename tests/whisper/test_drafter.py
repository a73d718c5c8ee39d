import itertools

import numpy as np
import pytest

from as2d_cli.bench.baselines.coupled import Coupling
from as2d_cli.bench.baselines.serial import WHOLE_DRAFT, serial_draft
from as2d_cli.decoding import EMPTY, END, Aligner, FixedBudget, decode
from as2d_cli.domain.errors import ModelError
from as2d_cli.domain.types import Request
from as2d_whisper.drafter import WhisperDrafter, sped_up

ENGLISH = Request(language="en")


@pytest.fixture(scope="module")
def window(drafter, features):
    return features("LJ001-0008.flac", drafter.spec.features)


def written(session, count, text=()):
    """Let a session write `count` tokens after `text`, one by one."""
    rows, tokens = [*session.prompt, *text][session.length :], []
    for _ in range(count):
        tokens.append(session.forward(rows))
        rows = [tokens[-1].id]
    return tokens


def test_a_session_writes_the_draft_with_probabilities(drafter, window):
    draft = list(itertools.islice(drafter.draft(window, ENGLISH), 12))
    tokens = written(drafter.open(window, ENGLISH), len(draft))
    assert [token.id for token in tokens] == [token.id for token in draft]
    assert all(0 < token.probability <= 1 for token in tokens)
    assert max(token.probability for token in tokens) > 0.9
    assert len({token.probability for token in tokens}) > 3


def test_a_session_ends_as_the_draft_does(drafter, window):
    draft = list(drafter.draft(window, ENGLISH))
    assert draft[-1].id == END
    session = drafter.open(window, ENGLISH)
    assert written(session, 1, [token.id for token in draft[:-1]])[0].id == END


def test_after_a_rollback_a_session_goes_on_from_other_text(drafter, window):
    session = drafter.open(window, ENGLISH)
    first = written(session, 6)
    session.rollback(len(session.prompt) + 2)
    assert [token.id for token in written(session, 3, [token.id for token in first[:3]])] == [
        token.id for token in first[3:]
    ]
    with pytest.raises(ModelError, match="rollback"):
        session.rollback(session.length + 1)


@pytest.mark.parametrize("mode", ["sd-4", "specasr-asp"])
def test_serial_modes_write_the_targets_text_in_far_fewer_passes(base, drafter, window, mode):
    end = base.spec.end_id
    plain = list(decode(base.open(window, ENGLISH), EMPTY, Aligner(), FixedBudget(0), end_id=end))
    session = drafter.open(window, ENGLISH)
    coupled = Coupling(session, drafter.tokenizer, base.tokenizer, base.spec.vocab_size)
    draft = serial_draft(mode, coupled, end_id=end)
    steps = list(decode(base.open(window, ENGLISH), draft, draft, WHOLE_DRAFT, end_id=end))
    assert [token for step in steps for token in step.tokens] == [
        token for step in plain for token in step.tokens
    ]
    assert len(steps) < 0.6 * len(plain)
    assert draft.ms > 0


def test_sped_up_audio_has_its_frames_sooner_and_silence_after():
    frames = np.arange(1, 101, dtype=np.float32)[None].repeat(3, axis=0)
    faster = sped_up(frames, 1.25)
    assert faster.shape == frames.shape
    assert np.allclose(faster[:, :79], 1 + 1.25 * np.arange(79))
    assert not faster[:, 80:].any()
    assert sped_up(frames, 1.0) is frames


def test_padding_stays_padding():
    padded = np.zeros((2, 100), np.float32)
    padded[:, :50] = 1.0
    assert np.flatnonzero(sped_up(padded, 1.25).any(axis=0))[-1] <= 40


@pytest.mark.parametrize("speed", [0.5, 3])
def test_a_speed_at_which_nothing_is_understood_is_refused(tmp_path, speed):
    with pytest.raises(ModelError, match="speed"):
        WhisperDrafter(tmp_path, 1, speed)
