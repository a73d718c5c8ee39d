"""A fitted context: less is encoded, by a rule that looks at the window only; text and times stay usable."""

import random
from dataclasses import replace

import numpy as np
import pytest

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.decoding import EMPTY, Aligner, FixedBudget, decode
from as2d_cli.domain.errors import ModelError
from as2d_cli.domain.types import FeatureSpec, Request
from as2d_cli.models import loader
from as2d_cli.models.registry import load_registry
from as2d_whisper.context import fit, read_context
from as2d_whisper.drafter import WhisperDrafter
from as2d_whisper.target import WhisperTarget

ENGLISH = Request(language="en", word_times=True)


@pytest.fixture(scope="module")
def fitted(base_folder):
    return WhisperTarget(base_folder, threads=1, context="fitted")


def text_and_words(target, window):
    session = target.open(window, ENGLISH)
    steps = list(decode(session, EMPTY, Aligner(), FixedBudget(0), end_id=target.spec.end_id))
    text = [token for step in steps for token in step.tokens][:-1]
    return target.tokenizer.decode_bytes(text).decode(), session.words(text, 11.0)


@pytest.mark.parametrize("seconds", [0.01, 0.5, 4.99, 11.0, 24.9, 25.1, 30.0])
@pytest.mark.parametrize(("width", "padding_s"), [(384, 9), (512, 5), (1280, 5)])
def test_all_of_the_audio_and_its_padding_is_kept_in_steps(seconds, width, padding_s):
    noise = np.random.default_rng(1).normal(0, 0.1, int(seconds * 16000)).astype(np.float32)
    window = log_mel(noise, FeatureSpec())
    kept = fit(window, "fitted", width).shape[1]
    assert min(3000, 100 * (seconds + padding_s)) <= kept <= 100 * (seconds + padding_s) + 130
    assert kept == 3000 or kept % 16 == 0
    assert np.array_equal(fit(window, "fitted", width), window[:, :kept])
    assert fit(window, "full", width) is window


def letters(text):
    """Return a text without punctuation, which the context may change."""
    return "".join(letter for letter in text.lower() if letter.isalnum() or letter == " ")


def test_a_fitted_context_writes_the_same_words_of_clear_speech_at_the_same_times(base, fitted, features):
    window = features("jfk.flac", base.spec.features)
    text, words = text_and_words(base, window)
    fitted_text, fitted_words = text_and_words(fitted, window)
    assert letters(fitted_text) == letters(text)
    apart = [abs(one.start_s - other.start_s) for one, other in zip(words, fitted_words, strict=True)]
    assert np.median(apart) <= 0.04
    assert max(apart) <= 0.4


def test_a_fitted_context_is_that_much_shorter(fitted, drafter, features):
    window = features("jfk.flac", fitted.spec.features)
    for model, positions in ((fitted, 832), (drafter, 1024)):  # of 20 ms: 11 s and 5 or 9 s, in steps
        session = model.open(window, ENGLISH)
        rows = session._model.decode(session._audio, session._cache, session.prompt[-1:])
        assert rows.alignment.shape[1] == positions


@pytest.mark.parametrize("name", ["LJ001-0002.flac", "fleurs-de-004.ogg"])
def test_rows_decided_together_are_those_decided_alone(fitted, features, name):
    session = fitted.open(features(name, fitted.spec.features), Request())
    opened, alone = session.length, [session.prompt[-1]]
    for _ in range(24):
        alone.append(int(session.forward(alone[-1:])[0]))
    draw = random.Random(0)
    for _ in range(4):
        session.rollback(opened)
        while session.length < opened + 24:
            at = session.length - opened
            rows = draw.randint(1, 24 - at)
            assert session.forward(alone[at : at + rows]).tolist() == alone[at + 1 : at + 1 + rows]


def test_the_option_decides_and_drafters_fit_by_themselves(tiny_en_folder):
    entry = load_registry().model("whisper-tiny.en")
    changed = replace(entry, options={**entry.options, "context": "fitted"})
    assert loader.load_target(entry, tiny_en_folder, 1)._context == "full"
    assert loader.load_target(changed, tiny_en_folder, 1)._context == "fitted"
    assert loader.load_drafter(entry, tiny_en_folder, 1)._context == "fitted"
    assert WhisperDrafter(tiny_en_folder, 1, context="full")._context == "full"


def test_an_option_that_does_not_exist_is_named():
    entry = load_registry().model("whisper-tiny.en")
    with pytest.raises(ModelError, match="option context is 'half'"):
        read_context(replace(entry, options={"context": "half"}), "full")


def test_features_that_are_no_window_are_refused(tiny_en):
    for shape in ((80, 3002), (80, 101), (128, 3000)):
        with pytest.raises(ModelError, match="features of shape"):
            WhisperTarget.open(tiny_en, np.zeros(shape, np.float32), ENGLISH)
