"""The text before a window: where it stands, how long it may be, and that it changes what is written."""

from dataclasses import replace

import numpy as np
import pytest

from as2d_cli.decoding import EMPTY, Aligner, FixedBudget, decode
from as2d_cli.domain.types import Request
from as2d_whisper.model import WhisperModel
from as2d_whisper.prompt import max_prompt_tokens


def text_of(target, features, request):
    session = target.open(features("jfk.flac", target.spec.features), request)
    steps = decode(session, EMPTY, Aligner("hybrid"), FixedBudget(1), end_id=target.spec.end_id)
    tokens = [token for step in steps for token in step.tokens]
    return target.tokenizer.decode_bytes(tokens).decode()


def test_the_prompt_stands_before_the_start_token_after_a_mark_of_its_own(base, features):
    session = base.open(
        features("jfk.flac", base.spec.features), Request(language="en", prompt=" John F. Kennedy:")
    )
    special = base.tokenizer.special
    assert session.prompt == (
        special("<|startofprev|>"),
        *base.tokenizer.encode(" John F. Kennedy:"),
        special("<|startoftranscript|>"),
        special("<|en|>"),
        special("<|transcribe|>"),
        special("<|notimestamps|>"),
    )
    assert session.length == len(session.prompt) - 1
    assert session.max_tokens == 448 - len(session.prompt)


def test_a_language_is_detected_from_the_audio_alone_and_the_cache_is_as_if_it_were_given(base, features):
    audio = features("fleurs-de-004.ogg", base.spec.features)
    prompt = "All of this is English, and it is a long text."
    detected = base.open(audio, Request(prompt=prompt))
    given = base.open(audio, Request(language="de", prompt=prompt))
    assert detected.language == "de"
    assert detected.prompt == given.prompt
    assert np.array_equal(detected.forward([detected.prompt[-1]]), given.forward([given.prompt[-1]]))


def test_a_prompt_changes_how_words_are_written_and_not_which(base, features):
    plain = text_of(base, features, Request(language="en"))
    loud = text_of(base, features, Request(language="en", prompt="MY FELLOW CITIZENS, I SHOUT ALL OF IT."))
    assert loud != plain
    assert loud.lower() == plain.lower()


def test_a_prompt_may_take_just_under_half_of_the_context(base):
    assert base.spec.max_prompt_tokens == 223


def test_of_a_prompt_that_is_longer_in_a_drafters_words_the_end_is_kept(tiny_en, features):
    session = tiny_en.open(
        features("jfk.flac", tiny_en.spec.features), Request(prompt="word " * 400 + "the very end")
    )
    before = session.prompt[: session.prompt.index(tiny_en.tokenizer.special("<|startoftranscript|>"))]
    assert len(before) == 1 + 223
    assert tiny_en.tokenizer.decode_bytes(before).endswith(b"the very end")


def test_a_model_without_the_mark_takes_no_prompt(base_folder, monkeypatch):
    model = WhisperModel(base_folder, 1, exact_rows=False)
    assert max_prompt_tokens(model) == 223
    monkeypatch.setattr(model.tokenizer, "has_special", lambda name: name != "<|startofprev|>")
    assert max_prompt_tokens(model) == 0


@pytest.mark.parametrize("prompt", ["<|endoftext|>", "<|startoftranscript|>"])
def test_special_tokens_in_a_prompt_are_ordinary_text(base, features, prompt):
    session = base.open(features("jfk.flac", base.spec.features), Request(language="en", prompt=prompt))
    assert base.tokenizer.end_id not in session.prompt
    assert session.prompt.count(base.tokenizer.special("<|startoftranscript|>")) == 1


def test_a_translation_has_half_the_context_and_a_transcript_all_that_is_left(base, features):
    heard = features("fleurs-de-004.ogg", base.spec.features)
    asked = Request(language="de")
    assert base.open(heard, asked).max_tokens == 448 - 4
    assert base.open(heard, replace(asked, task="translate")).max_tokens == 224


def test_a_window_that_is_surely_in_another_language_than_its_file_is_written_in_its_own(base, features):
    heard = features("fleurs-de-004.ogg", base.spec.features)
    of_english_file = Request(language="en", sure=0.9)
    assert base.open(heard, of_english_file).language == "de"
    assert base.open(heard, of_english_file).prompt == base.open(heard, Request(language="de")).prompt
    assert base.open(heard, replace(of_english_file, sure=0.99999)).language == "en"
    assert base.open(heard, Request(language="en")).language == "en"


def test_a_window_in_another_language_is_translated_although_its_file_needs_no_translation(base, features):
    heard = features("fleurs-de-004.ogg", base.spec.features)
    of_english_file = Request("translate", sure=0.9).in_language("en")
    assert of_english_file.task == "transcribe"
    assert base.open(heard, of_english_file).prompt == base.open(heard, Request("translate", "de")).prompt
    assert base.open(heard, of_english_file).max_tokens == 224


def test_silence_is_more_probable_where_nobody_speaks(base, features):
    speech = base.open(features("jfk.flac", base.spec.features), Request(language="en"))
    nothing = base.open(np.zeros(base.spec.features.shape, np.float32), Request(language="en"))
    assert 0 < speech.no_speech_prob < nothing.no_speech_prob <= 1
    prompted = base.open(features("jfk.flac", base.spec.features), Request(language="en", prompt="So. " * 40))
    assert 0 < prompted.no_speech_prob < 1
