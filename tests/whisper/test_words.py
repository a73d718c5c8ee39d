"""Word times: from made-up attention whose answer is known, and on a real clip."""

import itertools

import numpy as np
import pytest

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.decoding import EMPTY, Aligner, FixedBudget, decode
from as2d_cli.domain.errors import ModelError
from as2d_cli.domain.types import Request
from as2d_whisper.words import align, find_pauses, levels, split_words, words_of

LOUD, QUIET = 0.5, -0.5


def attention(spans, frames=100, heard=0.5):
    """One row per token that attends to its span of frames, over noise that all rows share."""
    rows = np.random.default_rng(1).uniform(0, 0.05, (len(spans), frames)).astype(np.float32)
    for row, (start, stop) in zip(rows, spans, strict=True):
        row[start:stop] += heard
    return rows


def silence(frames, *spans):
    """Mark the frames in `spans`."""
    marks = np.zeros(frames, bool)
    for start, stop in spans:
        marks[start:stop] = True
    return marks


def one_token_each(count):
    return [(i, i + 1) for i in range(count)]


def test_words_get_the_frames_that_their_tokens_attend_to():
    spans = [(0, 20), (20, 45), (45, 60), (60, 100)]
    assert align(attention(spans), one_token_each(4), silence(100)).tolist() == [list(span) for span in spans]


def test_a_word_of_several_tokens_spans_them():
    rows = attention([(0, 20), (20, 30), (30, 60), (60, 100)])
    assert align(rows, [(0, 1), (1, 3), (3, 4)], silence(100)).tolist() == [[0, 20], [20, 60], [60, 100]]


def test_a_pause_belongs_to_no_word_though_a_token_attends_to_it():
    """Whisper rests on a pause while it waits for the next word."""
    rows = attention([(5, 50), (50, 90), (90, 100)])
    pauses = silence(100, (0, 5), (30, 50), (80, 100))
    assert align(rows[:2], one_token_each(2), pauses).tolist() == [[5, 30], [50, 80]]
    assert align(rows, one_token_each(2), pauses).tolist() == [[5, 30], [50, 80]]  # with the end's row


def test_a_pause_is_never_inside_a_word():
    rows = attention([(0, 30), (50, 100), (60, 100)])
    spans = align(rows, [(0, 2), (2, 3)], silence(100, (30, 50)))
    assert spans[1, 0] >= 50
    assert spans[0, 1] <= 30 or spans[0, 0] >= 50


def test_what_the_end_of_the_text_attends_to_is_not_the_last_words():
    rows = attention([(0, 40), (40, 60), (60, 100)])
    assert align(rows, one_token_each(2), silence(100)).tolist() == [[0, 40], [40, 60]]
    assert align(rows[:2], one_token_each(2), silence(100))[-1, 1] > 90


def test_every_word_gets_a_frame_even_if_it_attends_to_nothing():
    spans = align(attention([(0, 50), (0, 0), (50, 100)]), one_token_each(3), silence(100))
    assert (spans[:, 1] > spans[:, 0]).all()
    assert np.abs(spans - [[0, 50], [50, 51], [51, 100]]).max() <= 1


def test_more_words_than_frames_are_still_in_order():
    spans = align(attention([(0, 1)] * 8, frames=3), one_token_each(8), silence(3))
    assert spans.shape == (8, 2)
    assert (np.diff(spans.ravel()) >= 0).all()
    assert (spans.min(), spans.max()) >= (0, 0)
    assert spans.max() <= 3


def test_the_search_finds_the_best_of_all_ways():
    """Against every way to place four words, pauses between them, in a few frames."""
    random, frames = np.random.default_rng(3), 7
    for _ in range(20):
        rows = random.standard_normal((4, frames)).astype(np.float32)
        scores = (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-6)
        best = max(
            sum(scores[i, cuts[2 * i] : cuts[2 * i + 1]].sum() for i in range(4))
            for cuts in itertools.combinations_with_replacement(range(frames + 1), 8)
            if all(cuts[2 * i] < cuts[2 * i + 1] for i in range(4))
        )
        spans = align(rows, one_token_each(4), silence(frames))
        found = sum(scores[i, start:stop].sum() for i, (start, stop) in enumerate(spans))
        assert found == pytest.approx(best, abs=1e-4)


def level(*parts):
    """Levels of stretches, given as (frames, level), with a little noise."""
    clean = np.concatenate([np.full(frames, value, np.float32) for frames, value in parts])
    return clean + np.random.default_rng(2).uniform(-0.05, 0.05, len(clean)).astype(np.float32)


def test_pauses_are_the_quiet_stretches():
    marks = find_pauses(level((20, QUIET), (40, LOUD), (15, QUIET), (40, LOUD), (10, QUIET)))
    assert marks.tolist() == silence(125, (0, 20), (60, 75), (115, 125)).tolist()


@pytest.mark.parametrize("shift", [-1.5, 1.0])
def test_pauses_do_not_depend_on_the_recording_level(shift):
    levels_now = level((20, QUIET), (40, LOUD), (20, QUIET))
    assert find_pauses(levels_now).any()
    assert find_pauses(levels_now + np.float32(shift)).tolist() == find_pauses(levels_now).tolist()


def test_a_closure_inside_a_word_is_no_pause():
    assert not find_pauses(level((40, LOUD), (7, QUIET), (40, LOUD)))[:87].any()
    assert find_pauses(level((40, LOUD), (8, QUIET), (40, LOUD))).sum() == 8


def test_steady_sound_has_no_pauses():
    for steady in (
        level((100, LOUD)),
        level((100, QUIET)),
        np.zeros(100, np.float32),
        np.zeros(1, np.float32),
    ):
        assert not find_pauses(steady).any()


def test_digital_silence_does_not_hide_the_pauses_of_the_recording():
    recorded = level((50, LOUD), (20, 0.0), (50, LOUD))
    padded = np.concatenate([np.full(200, -1.5, np.float32), recorded])
    assert find_pauses(padded).tolist() == silence(320, (0, 200), (250, 270)).tolist()


def test_a_short_utterance_in_a_long_silence_is_found():
    assert (~find_pauses(level((900, QUIET), (40, LOUD), (560, QUIET)))).nonzero()[0].tolist() == [
        *range(900, 940)
    ]


def test_levels_are_means_over_the_bands_of_pairs_of_frames():
    features = np.arange(2 * 6, dtype=np.float32).reshape(2, 6)
    assert levels(features).tolist() == [3.5, 5.5, 7.5]


def words(tokenizer, text, language="en"):
    tokens = tokenizer.encode(text)
    found = list(split_words(tokenizer, tokens, language))
    assert [first for _, first, _ in found[1:]] == [stop for _, _, stop in found[:-1]]
    assert "".join(word for word, _, _ in found) == text
    return [word for word, _, _ in found]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        (" Hello, world!", "en", [" Hello,", " world!"]),
        (" I can't; \"really\" can't...", "en", [" I", " can't;", ' "really"', " can't..."]),
        (" unbelievableness", "en", [" unbelievableness"]),
        (" 3,000 guineas", "en", [" 3,000", " guineas"]),
        ("No leading space", "en", ["No", " leading", " space"]),
        (" Größe, naïve", "de", [" Größe,", " naïve"]),
        (" 오늘 날씨가", "ko", [" 오늘", " 날씨가"]),
        ("  two  spaces ", "en", ["  two", "  spaces "]),
    ],
)
def test_words_begin_at_spaces_and_keep_their_punctuation(base, text, language, expected):
    assert words(base.tokenizer, text, language) == expected


@pytest.mark.parametrize(
    ("text", "language", "most"),
    [
        ("甚至出现交易几乎停滞的情况。", "zh", 3),
        ("今日はとても天気がいいですね。", "ja", 5),
        ("วันนี้อากาศดีมาก", "th", 6),
    ],
)
def test_languages_without_spaces_are_cut_at_whole_characters(base, text, language, most):
    found = words(base.tokenizer, text, language)
    assert len(found) > 3
    assert max(len(word) for word in found) <= most
    assert all(word[0].isalnum() for word in found)  # no word begins with punctuation or half a character
    assert len(words(base.tokenizer, text, "en")) == 1


def test_a_character_split_over_tokens_stays_in_one_word(base):
    text = " a 👩‍👧 b 饕餮"
    assert max(len(base.tokenizer.encode(part)) for part in ("👩‍👧", "饕餮")) > 2
    assert words(base.tokenizer, text) == [" a", " 👩‍👧", " b", " 饕餮"]
    assert words(base.tokenizer, "好饕餮了", "zh")[-1].endswith("了")


def test_half_a_character_at_the_end_is_dropped_as_from_the_text(base):
    tokens = base.tokenizer.encode(" so 👧")[:-1]
    found = list(split_words(base.tokenizer, tokens, "en"))
    assert "".join(word for word, _, _ in found) == base.tokenizer.decode_bytes(tokens).decode(
        "utf-8", "ignore"
    )


@pytest.mark.parametrize("duration_s", [0.013, 0.5, 1.23, 2.0, 30.0])
def test_times_are_within_the_window_and_never_go_back(base, duration_s):
    tokens = base.tokenizer.encode(" It was the best of times, it was the worst of times.")
    random = np.random.default_rng(4)
    for _ in range(5):
        rows = random.dirichlet(np.full(1500, 0.1), len(tokens) + 1).astype(np.float32)
        loudness = random.normal(0, 0.5, 1500).astype(np.float32)
        found = words_of(base.tokenizer, tokens, rows, loudness, language="en", duration_s=duration_s)
        times = [time for word in found for time in (word.start_s, word.end_s)]
        assert times == sorted(times)
        assert times[0] >= 0
        assert times[-1] <= duration_s
        assert "".join(word.text for word in found) == " It was the best of times, it was the worst of times."


def test_no_text_has_no_words(base):
    assert words_of(base.tokenizer, [], np.zeros((1, 9)), np.zeros(9), language="en", duration_s=1.0) == ()


def test_noise_before_the_speech_is_not_the_first_word(base):
    tokens = base.tokenizer.encode(" And so")
    rows = attention([(0, 200), (200, 230)], frames=300)
    found = words_of(base.tokenizer, tokens, rows, level((300, LOUD)), language="en", duration_s=6.0)
    assert found[0].end_s == pytest.approx(4.0)
    assert found[0].start_s == pytest.approx(3.0)


def timed(target, samples):
    session = target.open(log_mel(samples, target.spec.features), Request(language="en", word_times=True))
    steps = decode(session, EMPTY, Aligner(), FixedBudget(0), end_id=target.spec.end_id)
    tokens = [token for step in steps for token in step.tokens if token != target.spec.end_id]
    return tokens, session.words(tokens, len(samples) / 16000)


@pytest.mark.parametrize(("model", "pad_s"), [("base", 0.0), ("tiny_en", 0.0), ("tiny_en", 4.0)])
def test_the_words_of_a_real_clip_are_where_they_are_spoken(request, clip, model, pad_s):
    """jfk.flac, by ear and by its waveform; also with digital silence around it."""
    target, padding = request.getfixturevalue(model), np.zeros(int(16000 * pad_s), np.float32)
    tokens, found = timed(target, np.concatenate([padding, clip("jfk.flac"), padding]))
    assert "".join(word.text for word in found) == target.tokenizer.decode_bytes(tokens).decode()
    at = {word.text.strip(" ,."): (word.start_s - pad_s, word.end_s - pad_s) for word in reversed(found)}
    for word, start_s, end_s in (
        ("And", 0.3, 0.55),
        ("Americans", 1.5, 2.25),
        ("ask", 3.3, 3.75),
        ("not", 4.0, 4.35),
        ("country", 5.85, 6.35),
    ):
        assert at[word][0] == pytest.approx(start_s, abs=0.35), word
        assert at[word][1] == pytest.approx(end_s, abs=0.35), word
    pauses = [later.start_s - word.end_s for word, later in itertools.pairwise(found)]
    assert sum(pause >= 0.4 for pause in pauses) >= 3  # after "Americans", "ask" and the first "you"


def test_words_of_a_window_opened_without_word_times_are_an_error(tiny_en, features):
    session = tiny_en.open(features("LJ001-0008.flac", tiny_en.spec.features), Request())
    session.forward(session.prompt[-1:])
    with pytest.raises(ModelError, match="without word times"):
        session.words([1], 1.0)


def test_words_of_a_translation_are_split_as_english_whatever_is_spoken(base, features):
    request = Request("translate", language="ja", word_times=True)
    session = base.open(features("LJ001-0008.flac", base.spec.features), request)
    tokens = base.tokenizer.encode(" antidisestablishment quiddities")
    session.forward([session.prompt[-1], *tokens])
    found = session.words(tokens, 2.0)
    assert [word.text for word in found] == [" antidisestablishment", " quiddities"]
    assert len(words(base.tokenizer, " antidisestablishment quiddities", "ja")) > 2
