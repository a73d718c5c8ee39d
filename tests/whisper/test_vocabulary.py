import numpy as np
import pytest

from as2d_cli.domain.errors import ModelError
from as2d_cli.domain.types import Request
from as2d_whisper.convert import convert
from as2d_whisper.drafter import WhisperDrafter, sped_up
from as2d_whisper.target import WhisperTarget
from as2d_whisper.tokenizer import WhisperTokenizer
from as2d_whisper.vocabulary import kept_tokens

END = 261
IN, A, THE = 260, 259, 258
BARRED = 7


@pytest.fixture(scope="module")
def source(tmp_path_factory, tiny_whisper):
    folder = tmp_path_factory.mktemp("cut") / "source"
    tiny_whisper(languages=("en",), seed=3).write_safetensors(
        folder, is_multilingual=False, suppress_tokens=[BARRED]
    )
    return folder


@pytest.fixture(scope="module")
def window(tiny_whisper):
    tiny = tiny_whisper()
    return np.random.default_rng(9).standard_normal((tiny.n_mels, 2 * tiny.n_audio)).astype(np.float32)


def converted(source, folder, **options):
    folder.mkdir()
    convert(source, folder, {"decoder_bits": 32, **options})
    return folder


def written(folder, window, count=40):
    session = WhisperDrafter(folder, 1).open(window, Request(language="en"))
    tokens, rows = [], [session.prompt[-1]]
    for _ in range(count):
        tokens.append(session.forward(rows))
        rows = [max(tokens[-1].id, 0)]
    return tokens


def test_the_commonest_tokens_are_kept_and_all_bytes_and_the_end(source):
    tokenizer = WhisperTokenizer(source / "tokenizer.json")
    assert kept_tokens(tokenizer, 259, []).tolist() == [*range(256), THE, A, END]
    assert BARRED not in kept_tokens(tokenizer, 258, [BARRED])


def test_with_all_that_may_be_written_kept_the_draft_is_that_of_the_whole_vocabulary(
    source, window, tmp_path
):
    whole = written(converted(source, tmp_path / "whole"), window)
    cut = written(converted(source, tmp_path / "cut", vocabulary=261), window)
    assert [token.id for token in cut] == [token.id for token in whole]
    assert [token.probability for token in cut] == pytest.approx([token.probability for token in whole], 1e-3)
    assert len({token.id for token in whole}) > 3


def test_what_is_cut_is_never_written(source, window, tmp_path):
    ids = {token.id for token in written(converted(source, tmp_path / "cut", vocabulary=258), window)}
    assert not ids & {BARRED, IN, A}
    assert len(ids) > 3


@pytest.mark.parametrize("size", [3, 100_000, "all", 300.0])
def test_an_impossible_size_is_refused(source, tmp_path, size):
    with pytest.raises(ModelError, match="vocabulary"):
        converted(source, tmp_path / "cut", vocabulary=size)


def test_a_multilingual_model_keeps_its_vocabulary(tmp_path, tiny_whisper):
    tiny_whisper().write_safetensors(tmp_path / "source")
    with pytest.raises(ModelError, match="English-only"):
        converted(tmp_path / "source", tmp_path / "cut", vocabulary=258)


def test_a_model_with_a_cut_vocabulary_is_no_target(source, tmp_path):
    folder = converted(source, tmp_path / "cut", vocabulary=258)
    with pytest.raises(ModelError, match="can only draft"):
        WhisperTarget(folder, 1)


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
def test_a_speed_at_which_nothing_is_understood_is_refused(source, tmp_path, speed):
    folder = converted(source, tmp_path / "whole")
    with pytest.raises(ModelError, match="speed"):
        WhisperDrafter(folder, 1, speed)
