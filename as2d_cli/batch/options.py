"""What a user asks for, in the user's words: checked, looked up and made into the request of a run.

The command and the functions for programs both go through `build_request`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from as2d_cli.audio.tracks import EACH, channel_choice, track_choice
from as2d_cli.batch.outputs import output_folder
from as2d_cli.batch.request import WORD_FORMATS, BatchRequest, ClusterChoice
from as2d_cli.decoding.controller import MAX_CANDIDATES
from as2d_cli.domain.errors import RequestError
from as2d_cli.domain.languages import AUTO, EACH_WINDOW, language_code
from as2d_cli.engine.messages import DecodeSettings
from as2d_cli.models.options import beside_target, declared_options, with_options
from as2d_cli.models.registry import load_registry
from as2d_cli.profile.plan import QUANTILE
from as2d_cli.system.device import usable_threads
from as2d_cli.system.toml import suggestion
from as2d_cli.transcripts.formats import FORMATS, HIGHLIGHTING, SUBTITLES
from as2d_cli.transcripts.styles import STYLES
from as2d_cli.transcripts.subtitles import Layout

ENGINES = ("local", "ray")
ALL_FORMATS = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run, read and typed; docs/usage.md explains each."""

    given: frozenset[str] = frozenset()
    """Flags of this very run, by name (`memory_limit`): one that does nothing is refused."""
    model: str | None = None
    drafter: str | None = None
    model_options: Mapping[str, str | None] = field(default_factory=dict)
    """Those that plugins declare for their models, by name."""
    language: str = AUTO
    to: str | None = None
    """Language to translate to, as code or English name; None writes what is spoken."""
    prompt: str | None = None
    hotwords: str | None = None
    audio_track: str | None = None
    """Number from 1, or language, as code or English name; None takes each file's default."""
    channel: str | None = None
    """Number from 1, `left`, `right`, `mix` or `each`; None takes those in which somebody speaks."""
    vad: bool = True
    rescue: bool = True
    draft_limit: int | None = None
    """Most candidates per step, 0 for no drafts; None leaves it to this device's profile."""
    draft_tokens: int | None = None
    """Candidates in every step; None lets the controller choose."""
    latency_quantile: float = QUANTILE
    memory_limit_bytes: int | None = None
    compare: bool = False
    threads: int | None = None
    jobs: int | None = None
    """Engines that share the windows; None leaves it to what there is to do."""
    formats: tuple[str, ...] = ()
    output_dir: str | None = None
    overwrite: bool = False
    word_timestamps: bool = False
    show_confidence: bool = False
    """Whether the caller shows words by their probabilities."""
    layout: Layout = field(default_factory=Layout)
    structured: bool = False
    """Whether the caller takes segments and words: it prints JSON, or is a program."""
    fail_fast: bool = False
    engine: str = "local"
    address: str | None = None

    @property
    def decode(self) -> DecodeSettings:
        """How drafts are to be used."""
        cap = MAX_CANDIDATES if self.draft_limit is None else self.draft_limit
        return DecodeSettings(self.draft_tokens, cap=cap)

    @property
    def leaves_drafts_open(self) -> bool:
        """Whether this device's profile may decide on drafts."""
        is_fixed = self.draft_limit is not None or self.draft_tokens is not None
        return self.drafter is None and not is_fixed and not self.compare


def build_request(options: RunOptions) -> BatchRequest:
    """Return what is asked for, still without inputs.

    Raises `RequestError` for what makes no sense, `RegistryError` for an unknown model, `PluginError` for one
    whose plugin cannot be used.
    """
    to, channel = _language_to_write(options.to), channel_choice(options.channel)
    each = options.language.strip().lower() == EACH_WINDOW
    registry = load_registry()
    target, drafter = registry.choose(options.model, options.drafter, "translate" if to else "transcribe")
    others = registry.others_of(target, drafter)
    if drafter is not None:
        drafter = beside_target(drafter, options.model_options)
    request = BatchRequest(
        inputs=(),
        target=with_options(target, options.model_options, declared_options()),
        drafter=None if options.draft_limit == 0 else drafter,
        auto_budget=options.leaves_drafts_open,
        others=tuple(beside_target(other, options.model_options) for other in others),
        latency_quantile=options.latency_quantile,
        memory_limit_bytes=options.memory_limit_bytes,
        language=None if each else language_code(options.language),
        language_each=each,
        translate_to=to,
        prompt=joined_prompt(options.prompt, options.hotwords),
        timed=options.structured
        or options.show_confidence
        or channel == EACH,  # channels are put together by times
        word_timestamps=options.word_timestamps,
        shows_confidence=options.show_confidence,
        layout=options.layout,
        fail_fast=options.fail_fast,
        compare=options.compare,
        audio_track=track_choice(options.audio_track),
        channel=channel,
        vad=options.vad,
        rescue=options.rescue,
        threads=usable_threads(options.threads),
        jobs=options.jobs,
        cluster=choose_cluster(options.engine, options.address, options.threads),
        decode=options.decode,
    )
    request = with_outputs(request, options.formats, options.output_dir, overwrite=options.overwrite)
    _refuse_idle(options, request)
    return request


def with_outputs(
    request: BatchRequest, formats: Sequence[str], output_dir: str | None, *, overwrite: bool
) -> BatchRequest:
    """Return the request with these files to write. Raises `RequestError`."""
    chosen = formats_of(formats) if formats else ()
    return replace(
        request,
        timed=request.timed or any(name != "txt" for name in chosen),
        formats=chosen,
        folder=None if output_dir is None else output_folder(output_dir),
        overwrite=overwrite,
    )


def _language_to_write(text: str | None) -> str | None:
    """Return the code of the language to translate to, None to write what is spoken."""
    if text is None:
        return None
    code = language_code(text)
    if code is None:
        raise RequestError(f"--to cannot be {text!r}", "give a code like en, or an English name")
    return code


def joined_prompt(prompt: str | None, hotwords: str | None) -> str | None:
    """Return hotwords and prompt as the one text that a model is given, as faster-whisper orders them.

    Raises `RequestError` for bytes of another encoding.
    """
    joined = " ".join(text.strip() for text in (hotwords, prompt) if text and text.strip()) or None
    check_text("prompt and hotwords", joined or "")
    return joined


def check_text(name: str, text: str) -> None:
    """Raise `RequestError` for a text that holds what no model can be given: bytes that are no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError(f"{name}: not valid UTF-8: {text[:100]!r}", "give text in UTF-8") from error


def formats_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the output formats that are called so, each once. Raises `RequestError` if there is none."""
    chosen = tuple(dict.fromkeys(name.strip().lower() for name in names if name.strip()))
    if ALL_FORMATS in chosen:
        return tuple(FORMATS)
    for name in chosen:
        if name not in FORMATS:
            known = (*FORMATS, ALL_FORMATS)
            raise RequestError(f"there is no output format {name!r}", suggestion(name, known))
    if not chosen:
        raise RequestError("at least one format is needed", f"formats: {', '.join(FORMATS)}, {ALL_FORMATS}")
    return chosen


def choose_cluster(engine: str, address: str | None, threads: int | None) -> ClusterChoice | None:
    """Return the cluster that an engine of this name runs on, None for `local`. Raises `RequestError`."""
    if engine not in ENGINES:
        raise RequestError(f"there is no engine {engine!r}", f"engines: {', '.join(ENGINES)}")
    return None if engine == "local" else ClusterChoice(address, threads)


def _refuse_idle(options: RunOptions, request: BatchRequest) -> None:
    """Refuse an option that would do nothing: whoever gives it expects something else."""
    _refuse_idle_drafting(options, request)
    has_words = options.structured or WORD_FORMATS.intersection(request.formats)
    if "word_timestamps" in options.given and not has_words:
        raise RequestError("--word-timestamps does nothing without JSON", "add --json, or -f json")
    if "show_confidence" in options.given and options.structured:
        raise RequestError("--show-confidence does nothing with --json", "leave out one of them")
    if "overwrite" in options.given:
        refuse_idle_overwrite(request)
    _refuse_jobs(request)
    if "address" in options.given and request.cluster is None:
        raise RequestError("--address does nothing without a cluster", "add --engine ray")
    _refuse_idle_layout(options, request)


def _refuse_jobs(request: BatchRequest) -> None:
    """Refuse engines side by side that cannot be."""
    jobs, threads = request.jobs, request.threads
    if jobs is None or jobs == 1:
        return
    if request.cluster is not None:
        raise RequestError("--jobs is for this machine alone", "a cluster's nodes share out their cores")
    if request.compare:
        raise RequestError("--compare times one engine", "leave out --jobs")
    if not 1 <= jobs <= threads:
        raise RequestError(f"{jobs} engines need {jobs} threads", f"give --jobs from 1 to {threads}")


def _refuse_idle_layout(options: RunOptions, request: BatchRequest) -> None:
    if options.layout.style not in STYLES:
        name = options.layout.style
        raise RequestError(f"there is no subtitle style {name!r}", suggestion(name, STYLES))
    for name in ("subtitle_style", "max_line_count", "max_line_width", "max_words_per_line"):
        if name in options.given and not SUBTITLES.intersection(request.formats):
            raise RequestError(f"{_flag(name)} does nothing without subtitles", "add -f srt, vtt or ass")
    if "highlight_words" in options.given and not HIGHLIGHTING.intersection(request.formats):
        raise RequestError("--highlight-words does nothing without srt or vtt", "add -f srt or -f vtt")
    if "max_line_count" in options.given and options.layout.is_free:
        raise RequestError(
            "--max-line-count does nothing alone", "add --max-line-width or --max-words-per-line"
        )


def refuse_idle_overwrite(request: BatchRequest) -> None:
    """Raise `RequestError` if there is nothing to overwrite, as no files are written."""
    if not request.formats:
        raise RequestError("--overwrite does nothing without files to write", "add -f or -o")


def _refuse_idle_drafting(options: RunOptions, request: BatchRequest) -> None:
    able, chosen = request.able_drafters, request.drafter
    if "drafter" in options.given and chosen is not None and chosen not in able:
        raise RequestError(f"model {chosen.name!r} cannot {request.task}", "choose another drafter")
    for name in ("budget", "compare", "draft_tokens"):
        is_off = name == "budget" and options.draft_limit == 0
        if name in options.given and not able and not is_off:
            unable = f", and {chosen.name!r} cannot {request.task}" if chosen else ""
            raise RequestError(
                f"{_flag(name)} does nothing without a drafter{unable}", "choose one with --drafter"
            )
    if "latency_quantile" in options.given and not request.auto_budget:
        raise RequestError(
            "--latency-quantile does nothing where drafts are chosen", "leave out --drafter and --budget"
        )
    if "memory_limit" in options.given and not request.auto_budget:
        raise RequestError(
            "--memory-limit does nothing where drafts are not chosen by this device's profile",
            "leave out --drafter, --budget, --draft-tokens and --compare",
        )


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
