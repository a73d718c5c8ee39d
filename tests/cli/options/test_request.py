"""What the options of a run mean, without running anything."""

import os
from dataclasses import fields

import pytest

from as2d_cli.batch.request import ClusterChoice
from as2d_cli.cli.options.parameters import BatchOptions, TranslateOptions
from as2d_cli.cli.options.request import read_list, read_request
from as2d_cli.decoding.controller import MAX_CANDIDATES
from as2d_cli.domain.errors import RequestError
from as2d_cli.transcripts.styles import STYLES


def request(scripted, **options):
    return read_request(BatchOptions(files=["a.wav"], given=frozenset(options), **options))[0]


def test_nothing_said_of_drafts_leaves_it_to_the_device(scripted):
    plain = request(scripted)
    assert (plain.auto_budget, plain.memory_limit_bytes) == (True, None)
    assert (plain.decode.draft_tokens, plain.decode.cap) == (None, MAX_CANDIDATES)
    assert request(scripted, budget="auto").auto_budget


@pytest.mark.parametrize("option", [{"drafter": "hearer"}, {"draft_tokens": "3"}, {"compare": True}])
def test_whoever_asks_for_drafts_gets_them(scripted, option):
    chosen = request(scripted, **option)
    assert not chosen.auto_budget
    assert chosen.drafter is not None


@pytest.mark.parametrize("number", [1, 5, 64])
def test_a_budget_is_the_most_a_step_may_verify_and_asks_no_profile(scripted, number):
    chosen = request(scripted, budget=str(number))
    assert (chosen.auto_budget, chosen.decode.cap) == (False, number)
    assert chosen.decode.policy().cap == number
    assert chosen.drafter is not None


def test_a_budget_of_nothing_needs_no_drafter(scripted):
    chosen = request(scripted, budget="0", drafter="hearer")
    assert (chosen.drafter, chosen.auto_budget) == (None, False)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("600MB", 600_000_000),
        ("600m", 600_000_000),
        ("1.5GB", 1_500_000_000),
        ("1.5 GiB", 1_610_612_736),
        ("2gi", 2_147_483_648),
        ("64kB", 64_000),
        ("800000000", 800_000_000),
        (" 1g ", 1_000_000_000),
    ],
)
def test_sizes_are_read_as_people_write_them(scripted, text, size):
    assert request(scripted, memory_limit=text).memory_limit_bytes == size


@pytest.mark.parametrize(
    "text", ["", "MB", "-1GB", "1.5.5GB", "1TB", "0", "0.1", "600 mega", "٣GB", "1e9", "9" * 400]
)
def test_what_is_no_size_is_refused_with_an_example(scripted, text):
    with pytest.raises(RequestError, match="--memory-limit cannot be") as refused:
        request(scripted, memory_limit=text)
    assert "600MB" in refused.value.hint


@pytest.mark.parametrize("share", ["0", "1", "-1", "7", "nan", "often", ""])
def test_what_is_no_share_of_windows_is_refused(scripted, share):
    with pytest.raises(RequestError, match="--latency-quantile cannot be"):
        request(scripted, latency_quantile=share)


@pytest.mark.parametrize("text", ["-1", "65", "many", "1.5", "", "9" * 5000])
def test_what_is_no_budget_is_refused_with_the_range(scripted, text):
    with pytest.raises(RequestError, match="--budget cannot be") as refused:
        request(scripted, budget=text)
    assert "from 0 to 64" in refused.value.hint


def test_the_context_becomes_an_option_of_the_target_alone(monkeypatch):
    monkeypatch.delenv("AS2D_MODELS", raising=False)
    asked = request(None, model_options={"context": "fitted"})
    assert asked.target.options["context"] == "fitted"
    assert "context" not in asked.drafter.options
    assert request(None).target.options.get("context") is None


def test_the_backend_becomes_an_option_of_the_drafter_too(monkeypatch):
    monkeypatch.delenv("AS2D_MODELS", raising=False)
    asked = request(None, model_options={"backend": "mnn"})
    assert asked.target.options["backend"] == asked.drafter.options["backend"] == "mnn"
    assert "backend" not in request(None).drafter.options
    lookup = request(None, drafter="lookup", model_options={"backend": "mnn"})
    assert "backend" not in lookup.drafter.options, "it runs on no engine"


def test_a_context_makes_outputs_of_another_one_stale(monkeypatch):
    monkeypatch.delenv("AS2D_MODELS", raising=False)
    kept, changed = (
        request(None, output_format="txt", model_options=chosen).recipes()
        for chosen in ({}, {"context": "fitted"})
    )
    assert kept["txt"] != changed["txt"]


COUNTS, DOES_NOT_COUNT = True, False
BEFORE = {"files": ["a.wav"], "output_format": "txt,srt,json,ass"}
OPTIONS = {  # another value of each, and whether older outputs are then out of date
    "files": (["b.wav"], DOES_NOT_COUNT),  # what they hold is recorded apart
    "files_from": ("LIST", DOES_NOT_COUNT),
    "null": (True, DOES_NOT_COUNT),
    "model": ("whisper-tiny.en", COUNTS),
    "drafter": ("none", DOES_NOT_COUNT),
    "model_options": ({"context": "fitted"}, COUNTS),
    "audio_track": ("2", COUNTS),
    "channel": ("each", COUNTS),
    "language": ("de", COUNTS),
    "prompt": ("about", COUNTS),
    "hotwords": ("Añb", COUNTS),
    "vad": (False, COUNTS),
    "rescue": (False, COUNTS),
    "budget": ("3", DOES_NOT_COUNT),
    "draft_tokens": ("3", DOES_NOT_COUNT),
    "latency_quantile": ("0.5", DOES_NOT_COUNT),
    "memory_limit": ("600MB", DOES_NOT_COUNT),
    "threads": (1, DOES_NOT_COUNT),  # with Whisper
    "jobs": ("2", DOES_NOT_COUNT),  # with Whisper
    "compare": (True, DOES_NOT_COUNT),
    "output_dir": ("out", DOES_NOT_COUNT),  # files are looked for elsewhere
    "overwrite": (True, DOES_NOT_COUNT),
    "word_timestamps": (True, COUNTS),
    "show_confidence": (True, DOES_NOT_COUNT),
    "subtitle_style": ("netflix", COUNTS),
    "highlight_words": (True, COUNTS),
    "max_line_width": (30, COUNTS),
    "max_line_count": (1, COUNTS),
    "max_words_per_line": (3, COUNTS),
    "json": (True, DOES_NOT_COUNT),
    "fail_fast": (True, DOES_NOT_COUNT),
    "quiet": (True, DOES_NOT_COUNT),
    "verbose": (True, DOES_NOT_COUNT),
    "progress": (False, DOES_NOT_COUNT),
    "engine": ("ray", DOES_NOT_COUNT),  # with as many threads
    "address": ("head:6379", DOES_NOT_COUNT),
    "to": ("en", COUNTS),
}
NEEDED = {
    "null": {"files_from": "LIST"},
    "address": {"engine": "ray"},
    "max_line_count": {"max_line_width": 42},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_makes_outputs_stale_if_and_only_if_it_may_change_them(name, monkeypatch, tmp_path):
    monkeypatch.delenv("AS2D_MODELS", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "LIST").write_bytes(b"c.wav\0")
    kind = TranslateOptions if name == "to" else BatchOptions
    value, counts = OPTIONS[name]
    before = {**BEFORE, "threads": 2, **NEEDED.get(name, {})}
    read = [read_request(one)[0] for one in (BatchOptions(**before), kind(**{**before, name: value}))]
    assert (read[0].recipes() != read[1].recipes()) is counts


def test_of_every_option_it_is_decided_whether_it_counts():
    chosen = {field.name for field in fields(TranslateOptions)} - {"given"}
    assert chosen == {*OPTIONS, "output_format"}, "decide on the new option"


def test_threads_count_with_a_model_whose_bits_may_depend_on_them(scripted, monkeypatch):
    def recipes():
        return [request(scripted, output_format="txt", threads=number).recipes() for number in (1, 2)]

    one, two = recipes()
    assert one == two
    monkeypatch.setattr("as2d_scripted.plugin.CHANGE_NO_BITS", ())
    one, two = recipes()
    assert one != two
    shared = request(scripted, output_format="txt", threads=2, jobs="2").recipes()
    assert shared == one, "each engine has one thread"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": "0"}, "--jobs cannot be '0'"),
        ({"jobs": "many"}, "--jobs cannot be 'many'"),
        ({"jobs": "3", "threads": 2}, "3 engines need 3 threads"),
        ({"jobs": "2", "threads": 2, "engine": "ray"}, "--jobs is for this machine alone"),
        ({"jobs": "2", "threads": 2, "compare": True}, "--compare times one engine"),
    ],
)
def test_engines_side_by_side_that_cannot_be_are_refused(scripted, options, message):
    with pytest.raises(RequestError, match=message):
        request(scripted, **options)


@pytest.mark.parametrize(
    ("context", "message"), [("half", "no context 'half'"), ("fitted", "'speaker' has only one context")]
)
def test_a_context_that_does_not_exist_or_not_for_the_model_is_refused(scripted, context, message):
    with pytest.raises(RequestError, match=message):
        request(scripted, model_options={"context": context})


def test_where_to_run_is_this_machine_unless_ray_is_asked_for(scripted):
    assert request(scripted).cluster is None
    assert request(scripted, engine="ray").cluster == ClusterChoice(None, None)
    chosen = request(scripted, engine="ray", address="head:6379", threads=3)
    assert chosen.cluster == ClusterChoice("head:6379", 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "slurm"}, "there is no engine 'slurm'"),
        ({"address": "head:6379"}, "--address does nothing without a cluster"),
    ],
)
def test_engines_that_do_not_exist_and_options_that_are_not_for_them_are_refused(scripted, options, message):
    with pytest.raises(RequestError, match=message):
        request(scripted, **options)


@pytest.mark.parametrize(
    ("content", "null", "names"),
    [
        (b"a.wav\n\nb b.wav \n  \n#c.wav", False, ["a.wav", "b b.wav ", "#c.wav"]),
        (b"\xef\xbb\xbfa.wav\r\nb.wav\r\n", False, ["a.wav", "b.wav"]),
        (b"a\nb.wav\0c.wav\0", True, ["a\nb.wav", "c.wav"]),
        (b"\xff.wav\n", False, [os.fsdecode(b"\xff.wav")]),
        (b"", False, []),
    ],
)
def test_a_list_has_one_path_a_line(tmp_path, content, null, names):
    (tmp_path / "list").write_bytes(content)
    assert read_list(str(tmp_path / "list"), null=null) == names


def test_a_list_that_cannot_be_read_is_a_usage_error(tmp_path):
    with pytest.raises(RequestError, match="the list cannot be read: No such file"):
        read_list(str(tmp_path / "gone"))
    with pytest.raises(RequestError, match="--questions is empty"):
        read_list("", option="questions")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subtitle_style": "netflx", "output_format": "srt"}, "there is no subtitle style 'netflx'"),
        (
            {"subtitle_style": "bbc", "output_format": "txt"},
            "--subtitle-style does nothing without subtitles",
        ),
        (
            {"highlight_words": True, "output_format": "ass"},
            "--highlight-words does nothing without srt or vtt",
        ),
    ],
)
def test_a_style_that_does_not_exist_or_would_do_nothing_is_refused(scripted, options, message):
    with pytest.raises(RequestError, match=message):
        request(scripted, **options)


@pytest.mark.parametrize("name", STYLES)
def test_each_style_can_be_chosen(scripted, name):
    chosen = request(scripted, subtitle_style=name.upper(), output_format="srt", highlight_words=True)
    assert (chosen.layout.style, chosen.layout.highlight_words) == (name, True)
    option = next(one for one in fields(BatchOptions) if one.name == "subtitle_style")
    assert name in str(option.type)


def test_a_language_for_each_window_is_no_language_and_makes_outputs_stale(scripted):
    asked = [BatchOptions(**{**BEFORE, "language": name}) for name in ("auto", "Each ")]
    auto, each = (read_request(options)[0] for options in asked)
    assert (auto.language, each.language) == (None, None)
    assert (auto.language_each, each.language_each) == (False, True)
    assert auto.recipes() != each.recipes()
