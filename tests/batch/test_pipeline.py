"""Files through the engine: put together in order, errors where they belong, both ways compared."""

from itertools import pairwise

import numpy as np
import pytest
import soundfile

from as2d_cli.audio.tracks import EACH, AudioChoice
from as2d_cli.batch.pipeline import Pipeline
from as2d_cli.domain.errors import DecodeError
from as2d_cli.domain.types import DecodeStats, Request, WindowResult
from as2d_cli.engine.comparison import Compared, Comparison
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.messages import ModelRef
from as2d_cli.engine.scheduler import WindowOutcome
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource


def model(name, **options):
    return ModelRef(
        ModelEntry(name, "scripted", "any", NoSource(), options={"words": 20, **options}), None, 1
    )


@pytest.fixture(scope="module")
def engine():
    with Engine(EngineSettings(model("speaker", encode_ms=50.0), model("hearer", error_rate=0.1))) as engine:
        yield engine


def test_files_come_back_in_order_each_with_its_own_windows(engine, sound):
    paths = [sound("a.wav", 2), sound("long.wav", 70), sound("b.wav", 3)]
    works = list(Pipeline(engine).run(paths, Request()))
    assert [work.source for work in works] == paths
    assert [work.number for work in works] == [0, 1, 2]
    assert [work.duration_s for work in works] == [2, 70, 3]
    assert [len(work.parts) for work in works] == [1, 3, 1]
    spans = [span for span, _ in works[1].parts]
    assert [spans[0].start_s, spans[-1].end_s] == [0, 70]
    texts = [work.transcript(Request(), "speaker", None).text.split() for work in works]
    assert [len(text) for text in texts] == [20, 60, 20]
    assert texts[0] != texts[2]


def test_files_of_several_runs_can_be_told_apart_by_the_engine(engine, sound):
    pipeline = Pipeline(engine)
    sources = [sound("a.wav", 2), sound("b.wav", 3)]
    windows = [
        (work.number, window.task.group)
        for _ in range(2)
        for work, window in pipeline.events(sources, Request())
        if window
    ]
    assert windows == [(0, 0), (1, 1), (0, 2), (1, 3)]


def test_a_file_between_others_that_cannot_be_read_harms_neither(engine, sound, tmp_path):
    (tmp_path / "bad.wav").write_text("no sound")
    paths = [
        tmp_path / "gone.wav",
        sound("a.wav"),
        tmp_path / "bad.wav",
        sound("b.wav"),
        tmp_path / "gone2.wav",
    ]
    works = list(Pipeline(engine).run(paths, Request()))
    assert [work.source for work in works] == paths
    assert [work.error is None for work in works] == [False, True, False, True, False]
    assert [len(work.parts) for work in works] == [0, 1, 0, 1, 0]


def test_word_times_make_timed_segments_and_plain_text_has_none(engine, sound):
    request = Request(word_times=True)
    (work,) = Pipeline(engine).run([sound("a.wav", 40)], request)
    transcript = work.transcript(request, "speaker", "hearer")
    assert " ".join(segment.text for segment in transcript.segments) == transcript.text
    assert 30 < transcript.segments[-1].end_s <= 40
    (work,) = Pipeline(engine).run([sound("a.wav", 40)], Request())
    assert work.transcript(Request(), "speaker", "hearer").segments == ()


def test_every_window_is_told_of_as_it_comes_back(engine, sound):
    paths = [sound("a.wav", 2), sound("long.wav", 40)]
    events = list(Pipeline(engine).events(paths, Request()))
    assert [(work.source, window is None) for work, window in events] == [
        (paths[0], False),
        (paths[0], True),
        (paths[1], False),
        (paths[1], False),
        (paths[1], True),
    ]
    assert sum(window.task.window.duration_s for _, window in events if window) == pytest.approx(42)


def test_comparing_decodes_every_window_both_ways_and_finds_them_identical(engine, sound):
    paths = [sound("a.wav", 2), sound("long.wav", 70)] + [sound(f"{number}.wav", 1) for number in range(6)]
    both = Compared(engine)
    works = list(Pipeline(engine, compared=both).run(paths, Request()))
    assert [len(work.parts) for work in works] == [1, 3, *[1] * 6]
    assert any(result.stats.proposed for work in works for _, result in work.parts), (
        "with drafts is what counts"
    )
    found = both.found
    assert (found.windows, found.identical, found.undecided, found.differing) == (10, 10, 0, ())
    assert found.drafted_s > 0
    assert found.speedup == pytest.approx(found.plain_s / found.drafted_s)


class TwoFacedEngine:
    """Says something else in window 1 without drafts, and cannot decode window 2 so."""

    is_drafting = True

    def run(self, tasks, *, drafted=True):
        for task in tasks:
            index = task.window.index
            if index == 2 and not drafted:
                yield WindowOutcome(task, None, DecodeError("broken"))
                continue
            tokens = (5, 6 if drafted or index != 1 else 7)
            stats = DecodeStats(wall_s=2.0 if drafted and index == 0 else 1.0)
            yield WindowOutcome(task, WindowResult("hi", tokens, "en", stats=stats))


def test_a_difference_is_counted_and_says_where_it_is(sound):
    both = Compared(TwoFacedEngine())
    (work,) = Pipeline(TwoFacedEngine(), compared=both).run([sound("long.wav", 70)], Request())
    assert work.error is None
    found = both.found
    assert (found.windows, found.identical, found.undecided, found.slower) == (2, 1, 1, 1)
    start_s = work.parts[1][0].start_s
    assert found.differing == ((0, start_s),)
    assert 20 < start_s <= 30
    assert both.taken(7).differing == ((7, start_s),)
    assert both.found == Comparison(), "what was taken is not taken again"


def silent(tmp_path, name, seconds):
    path = tmp_path / name
    soundfile.write(path, np.zeros(int(seconds * 16000), np.float32), 16000)
    return path


def test_windows_without_speech_are_not_decoded_and_keep_their_place(engine, sound, tmp_path):
    mixed = tmp_path / "mixed.wav"
    speech, _ = soundfile.read(sound("speech.wav", 20), dtype="float32")
    soundfile.write(mixed, np.concatenate([speech, np.zeros(95 * 16000, np.float32), speech]), 16000)
    paths = [silent(tmp_path, "silent.wav", 200), mixed, silent(tmp_path, "end.wav", 1)]
    events = list(Pipeline(engine).events(paths, Request()))
    heard = [window for _, window in events if window]
    first, second, third = (work for work, window in events if window is None)
    assert [work.error for work in (first, second, third)] == [None, None, None]
    assert sum(outcome.task.window.duration_s for outcome in heard) == pytest.approx(200 + 135 + 1)
    assert first.silent_windows == first.returned == len(first.parts) >= 7
    assert 2 <= second.silent_windows <= second.returned - 2
    assert len(second.transcript(Request(), "speaker", None).text.split()) == 20 * (
        second.returned - second.silent_windows
    )
    assert second.warnings == []
    spans = [span for span, _ in second.parts]
    assert all(earlier.end_s == pytest.approx(later.start_s) for earlier, later in pairwise(spans))


def test_a4_where_nobody_speaks_the_transcript_is_empty_and_a_warning_says_so(engine, tmp_path):
    (work,) = Pipeline(engine).run([silent(tmp_path, "silent.wav", 3)], Request(word_times=True))
    transcript = work.transcript(Request(word_times=True), "speaker", None)
    assert (transcript.text, transcript.segments, transcript.language) == ("", (), None)
    assert transcript.duration_s == 3
    assert work.warnings == ["no speech found: the transcript is empty"]


def test_a_recording_without_speech_that_is_not_silent_comes_with_a_way_out(engine, tmp_path):
    noise = np.random.default_rng(2).normal(0, 0.1, 16_000 * 3)
    soundfile.write(tmp_path / "loud.wav", noise, 16_000)
    soundfile.write(tmp_path / "quiet.wav", noise / 1000, 16_000, subtype="FLOAT")
    loud, quiet = Pipeline(engine).run([tmp_path / "loud.wav", tmp_path / "quiet.wav"], Request())
    assert loud.warnings == ["no speech found: the transcript is empty; --no-vad decodes it all the same"]
    assert quiet.warnings == ["no speech found: the transcript is empty"]


def test_speech_of_which_no_word_was_written_is_told_of_with_its_time(sound, tmp_path):
    """OpenWhispr/openwhispr#2152: whole sentences dropped, and nothing said about it."""
    brief = model("speaker", heard_to=0.5)
    path = sound("long.wav", 40)
    with Engine(EngineSettings(brief, None)) as engine:
        (work,) = Pipeline(engine).run([path], Request(word_times=True))
        (untimed,) = Pipeline(engine).run([path], Request())
        (translated,) = Pipeline(engine).run([path], Request(task="translate", word_times=True))
        (unheard,) = Pipeline(engine, vad=False).run([path], Request(word_times=True))
    assert work.warnings == [
        f"somebody speaks from {(span.start_s + span.end_s) / 2:.1f} s to {span.end_s:.1f} s, "
        "but no word was written: check it"
        for span, _ in work.parts
    ]
    assert all(result.is_doubtful for _, result in work.parts)
    assert untimed.warnings == translated.warnings == unheard.warnings == []


def test_without_voice_detection_every_window_is_decoded(engine, tmp_path):
    (work,) = Pipeline(engine, vad=False).run([silent(tmp_path, "silent.wav", 3)], Request())
    assert len(work.transcript(Request(), "speaker", None).text.split()) == 20
    assert work.warnings == []


def test_a_comparison_leaves_out_what_was_not_decoded(engine, sound, tmp_path):
    both = Compared(engine)
    works = list(
        Pipeline(engine, compared=both).run([silent(tmp_path, "silent.wav", 3), sound("a.wav")], Request())
    )
    assert [work.silent_windows for work in works] == [1, 0]
    assert (both.found.windows, both.found.identical) == (1, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no " * 30, "repeats itself: check it"),
        (
            "no " * 300,
            "repeats itself and reached the model's limit before its end: check it",
        ),
        ("all of it is in the box", None),
    ],
)
def test_a_target_in_a_loop_keeps_its_text_and_is_told_of(sound, text, said):
    with Engine(EngineSettings(model("speaker", text=text), None)) as engine:
        (work,) = Pipeline(engine).run([sound("a.wav")], Request())
    assert work.warnings == ([f"the text from 0.0 s to 2.0 s {said}"] if said else [])
    assert work.transcript(Request(), "speaker", None).text == " ".join(text.split()[:224])


def test_channels_that_are_heard_apart_become_speakers_of_one_file(engine, sound, tmp_path):
    speech, rate = soundfile.read(sound("a.wav", 70), dtype="float32")
    talk = tmp_path / "talk.wav"
    soundfile.write(talk, np.stack([speech, np.zeros_like(speech), np.roll(speech, rate)], axis=1), rate)
    pipeline = Pipeline(engine, choice=AudioChoice(channel=EACH))
    events = list(pipeline.events([talk], Request(word_times=True)))
    work = events[-1][0]
    transcript = work.transcript(Request(word_times=True), "speaker", None)
    assert work.duration_s == sum(span.new_s for span, _ in work.parts) == 70
    assert {segment.speaker for segment in transcript.segments} == {"Channel 1", "Channel 3"}
    starts_s = [segment.start_s for segment in transcript.segments]
    assert starts_s == sorted(starts_s)
    assert len(transcript.text.split()) == 6 * 20
    silent = [window.task for _, window in events if window and window.task.window.channel == 2]
    assert len(silent) == 3
    assert all(task.known_result is not None for task in silent)
