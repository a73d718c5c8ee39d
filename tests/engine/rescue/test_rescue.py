"""Which windows are decoded again, how, and what is made of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from as2d_cli.audio.log_mel import heard_frames, log_mel
from as2d_cli.domain.types import Request, Span
from as2d_cli.engine.rescue import rescue
from as2d_cli.engine.rescue.care import Care
from as2d_cli.engine.rescue.rescue import Rescuer
from as2d_cli.testing.session import ScriptedSession
from as2d_scripted import Script, ScriptedTarget

SPEECH = soundfile.read(Path(__file__).parents[2] / "data" / "jfk.flac", dtype="float32")[0]
TIMED = Request(word_times=True, language="en")
LOOP = "and so on " * 20


class Saying:
    """A target that says what `say` makes of the seconds it hears and of the request; notes what it heard."""

    def __init__(self, say, heard_to=1.0):
        self._say, self._heard_to = say, heard_to
        self._model = ScriptedTarget()
        self.spec, self.tokenizer = self._model.spec, self._model.tokenizer
        self.asked, self.heard = [], []

    def open(self, features, request):
        seconds = heard_frames(features) / 100
        self.asked.append((seconds, request.prompt))
        self.heard.append(features)
        script = Script(self._say(seconds, request))
        return ScriptedTarget(script, heard_to=self._heard_to).open(features, request)


def looked_after(target, samples, request=TIMED, *, listens=True, rescues=True):
    rescuer = Rescuer(target)
    first = rescuer.decoded(samples, request)
    target.asked.clear()
    return first, rescuer.looked_after(first, samples, request, Care(listens, rescues))


def test_a_window_without_doubt_is_decoded_once():
    target = Saying(lambda *_: "one two three four five six seven eight nine ten eleven twelve")
    first, result = looked_after(target, SPEECH)
    assert target.asked == []
    assert result.tokens == first.tokens
    assert not result.rescued


def test_the_words_of_a_stretch_go_where_it_is():
    target = Saying(lambda seconds, _: "a b c d e f" if seconds > 8 else "g h i j k l m n", heard_to=0.5)
    first, result = looked_after(target, SPEECH)
    assert first.text == " a b c d e f"
    assert result.text.startswith(" a b c d e f g h i j k l m n")
    assert result.rescued
    starts = [word.start_s for word in result.words]
    assert starts == sorted(starts)
    assert starts[6] == pytest.approx(len(SPEECH) / 32_000, abs=0.1)
    assert [token for word in result.words for token in word.tokens] == list(result.tokens[:-1])


def test_a_word_that_lost_speech_was_given_to_stays_and_the_rest_is_heard_behind_it():
    """Whisper leaves out what begins in the middle of a word, and stops after it a second time."""

    def say(seconds, _):
        return "a b c d e f" if seconds > 10.9 else "f" if seconds > 9 else "g h i j k l m n"

    target = Saying(say)
    first = Rescuer(target).decoded(SPEECH, TIMED)
    starts = [0.0, 0.3, 0.6, 0.9, 1.2, 1.5]
    ends = [*starts[1:], 11.0]
    timed = tuple(
        replace(word, start_s=start, end_s=end)
        for word, start, end in zip(first.words, starts, ends, strict=True)
    )
    first = replace(first, words=timed)
    result = Rescuer(target).looked_after(first, SPEECH, TIMED, Care(listens=True, rescues=True))
    assert result.text == " a b c d e f g h i j k l m n"
    times = [(word.start_s, word.end_s) for word in result.words]
    assert times == sorted(times)
    assert all(end >= start for start, end in times)
    assert times[5][1] < 4


def test_slow_speech_is_not_decoded_again():
    target = Saying(lambda *_: "a b c d e f g")  # 1.6 s each
    first, result = looked_after(target, SPEECH)
    assert target.asked == []
    assert result.tokens == first.tokens


def test_a_stretch_without_speech_is_left_alone():
    target = Saying(lambda *_: "a b c d e f g h i j k l", heard_to=11 / 25)
    _, result = looked_after(target, np.concatenate([SPEECH, np.zeros(14 * 16_000, np.float32)]))
    assert target.asked == []
    assert result.left_out == ()


def test_a_stretch_that_loops_is_not_taken_and_told_of():
    target = Saying(lambda seconds, _: "a b c d e f" if seconds > 8 else LOOP, heard_to=0.5)
    first, result = looked_after(target, SPEECH)
    assert target.asked
    assert result.tokens == first.tokens
    assert result.left_out == (Span(pytest.approx(5.5), pytest.approx(11.0)),)
    assert not result.rescued


@pytest.mark.parametrize(("sure", "is_taken"), [(-0.5, True), (-0.7, False)])
def test_a_guess_is_not_taken_for_what_was_said(monkeypatch, sure, is_taken):
    monkeypatch.setattr(rescue, "mean_log_probability", lambda session, tokens: sure)
    monkeypatch.setattr(ScriptedSession, "scores", lambda self, tokens: None, raising=False)
    target = Saying(lambda seconds, _: "a b c d e f" if seconds > 8 else "g h i j k l m n", heard_to=0.5)
    _, result = looked_after(target, SPEECH)
    assert result.rescued is is_taken
    assert bool(result.left_out) is not is_taken


class Sparing(Saying):
    """Says little at first, and the whole where it is to be careful."""

    def open_carefully(self, features, request):
        return ScriptedTarget(Script("a b c d e f g h i j k l")).open(features, request)


@pytest.mark.parametrize("said", [LOOP, "a b c"])
def test_a_doubtful_window_of_a_target_that_spares_time_is_decoded_carefully_first(said):
    target = Sparing(lambda *_: said, heard_to=0.2)
    spared = Rescuer(Saying(lambda *_: said, heard_to=0.2)).decoded(SPEECH, TIMED)
    result = Rescuer(target).looked_after(spared, SPEECH, TIMED, Care(listens=True, rescues=True))
    assert (result.text, result.rescued, target.asked) == (" a b c d e f g h i j k l", True, [])


def test_a_target_that_spares_time_is_left_to_it_where_nothing_is_in_doubt():
    target = Sparing(lambda *_: "m n o p q r s t u v w x")
    spared = Rescuer(Saying(lambda *_: "m n o p q r s t u v w x")).decoded(SPEECH, TIMED)
    result = Rescuer(target).looked_after(spared, SPEECH, TIMED, Care(listens=True, rescues=True))
    assert result.tokens == spared.tokens
    assert not result.rescued


def test_a_prompt_that_makes_a_window_loop_is_left_out():
    target = Saying(lambda _, request: LOOP if request.prompt else "a b c d e f g h i j k l")
    first, result = looked_after(target, SPEECH, replace(TIMED, prompt="names"))
    assert first.looped
    assert [prompt for _, prompt in target.asked] == [None]
    assert (result.text, result.looped, result.rescued) == (" a b c d e f g h i j k l", False, True)


def test_a_window_in_a_loop_is_cut_in_two():
    target = Saying(lambda seconds, _: LOOP if seconds > 9 else "a b c d e f g")
    _, result = looked_after(target, SPEECH)
    assert result.text == " a b c d e f g a b c d e f g"
    assert not result.looped
    assert sum(seconds for seconds, _ in target.asked) == pytest.approx(11, abs=0.1)


def test_a_loop_that_stays_is_kept_as_it_was_and_stays_in_doubt():
    target = Saying(lambda *_: LOOP)
    first, result = looked_after(target, SPEECH)
    assert 1 < len(target.asked) < 10
    assert (result.tokens, result.looped, result.rescued) == (first.tokens, True, False)


def test_without_rescue_what_is_left_out_is_told_of():
    target = Saying(lambda *_: "a b c d e f", heard_to=0.5)
    first, result = looked_after(target, SPEECH, rescues=False)
    assert target.asked == []
    assert result.tokens == first.tokens
    assert result.left_out
    assert result.stats.rescue_s == 0


@pytest.mark.parametrize("request_", [replace(TIMED, task="translate", language="de")])
def test_translations_are_decoded_again_for_loops_alone(request_):
    target = Saying(lambda *_: "a b c d e f", heard_to=0.5)
    looked_after(target, SPEECH, request_)
    assert target.asked == []
    target = Saying(lambda seconds, _: LOOP if seconds > 9 else "a b c d e f g")
    _, result = looked_after(target, SPEECH, request_)
    assert result.rescued


def test_features_of_a_stretch_are_those_of_a_window_of_its_own():
    target = Saying(lambda seconds, _: "a b c d e f" if seconds > 8 else "g h i j k l m n", heard_to=0.5)
    looked_after(target, SPEECH)
    half = log_mel(SPEECH[len(SPEECH) // 2 :], target.spec.features)
    assert np.array_equal(target.heard[1], half)
