"""Frozen values that cross module and process boundaries. No behaviour but what follows from one value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from as2d_cli.domain.tasks import Task as Task

Samples = NDArray[np.float32]
"""Mono audio at `SAMPLE_RATE_HZ`, shape (n_samples,), nominally within [-1, 1]."""

Features = NDArray[np.float32]
"""Model input for one window, shape (n_mels, n_frames)."""

TokenIds = NDArray[np.int32]
"""Ids of tokens, shape (n_tokens,)."""

SAMPLE_RATE_HZ = 16_000
WINDOW_S = 30.0
"""Longest window: Whisper-type encoders see 30 s at a time."""
FRAMES_PER_S = 100
"""Of features: one every 10 ms."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a file, or of one of its channels, seconds."""

    start_s: float
    end_s: float
    channel: int | None = None
    """Number from 1, where channels are heard apart."""

    @property
    def new_s(self) -> float:
        """How much of the file's length it adds: only its first channel counts."""
        return self.end_s - self.start_s if self.channel in {None, 1} else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """One independently decoded span of a file: `samples` starts at sample `start` of the file."""

    index: int
    start: int
    samples: Samples
    channel: int | None = None
    """Number from 1, where channels are heard apart."""

    @property
    def start_s(self) -> float:
        """Start within the file, seconds."""
        return self.start / SAMPLE_RATE_HZ

    @property
    def duration_s(self) -> float:
        """Length, seconds."""
        return len(self.samples) / SAMPLE_RATE_HZ

    @property
    def end_s(self) -> float:
        """End within the file, seconds."""
        return self.start_s + self.duration_s

    @property
    def span(self) -> Span:
        """Where in the file it lies; unlike the window itself, light enough to keep."""
        return Span(self.start_s, self.end_s, self.channel)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a target for one window; the drafter sees the same request."""

    task: Task = "transcribe"
    """What is to be done: transcribe, translate or ask."""
    language: str | None = None
    """Whisper language code, or None to detect it from the window."""
    word_times: bool = False
    """Whether the caller needs the time of each word (subtitles, JSON)."""
    prompt: str | None = None
    """Text that the window is taken to follow; at most `TargetSpec.max_prompt_tokens` long."""
    question: str | None = None
    """What is to be answered; task `ask` only."""
    passage: str | None = None
    """What a model that reads is given of the recording; at most `TargetSpec.max_passage_tokens` long."""

    to: str = "en"
    """Whisper code of the language to translate to; task `translate` only."""

    sure: float | None = None
    """Probability from which the language that a model hears counts, not `language`; None: never."""
    asked: Task | None = None
    """The task that was asked for, where the language made it another."""

    def in_language(self, language: str | None) -> Request:
        """Return the same for speech known to be in `language`: English in English is just written down."""
        asked = self.asked or self.task
        if asked == "translate" and language == self.to:
            return replace(self, language=language, task="transcribe", asked=asked)
        return replace(self, language=language, task=asked, asked=None)


@dataclass(frozen=True, slots=True)
class FeatureSpec:
    """The front end a model wants; two models with equal specs share one feature array."""

    n_mels: int = 80
    """Mel bands."""
    n_frames: int = 3000
    """Frames of 10 ms, 0.0 behind shorter audio (which is not silence). 0: the model does not listen."""
    reach: int = SAMPLE_RATE_HZ // FRAMES_PER_S
    """Samples behind its end up to which audio counts as heard: n samples are (n + reach) // 160 frames.

    160: a frame more than whole ones, as Whisper's implementations have it; 159: every frame that is begun.
    Silence follows the audio then. 0: whole frames only, and the audio is mirrored at its end.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """(n_mels, n_frames)."""
        return (self.n_mels, self.n_frames)

    @property
    def length_s(self) -> float:
        """Longest audio that it takes in, seconds."""
        return self.n_frames / FRAMES_PER_S

    def flaw(self, longest_s: float) -> str | None:
        """Return why windows of up to so many seconds cannot be given, None if they can."""
        if self == NOTHING_HEARD:
            return None
        shape = f"its features are {self.n_mels} times {self.n_frames}"
        if self.n_frames < round(FRAMES_PER_S * longest_s):
            return f"{shape}, which windows of {longest_s:g} s do not fit"
        is_sane = 1 <= self.n_mels <= _MAX_MELS and self.n_frames <= _MAX_FRAMES
        return None if is_sane else f"{shape}, which nothing needs"


_MAX_MELS, _MAX_FRAMES = 1024, 60_000
NOTHING_HEARD = FeatureSpec(0, 0)
"""Of models that read: their whole input is in the request."""


@dataclass(frozen=True, slots=True)
class Word:
    """One written word with its place in the window or file, seconds; `text` keeps its leading space."""

    text: str
    start_s: float
    end_s: float
    probability: float | None = None
    """Mean probability of its tokens, as openai/whisper has it (`timing.py`); None if they are not known."""
    tokens: tuple[int, ...] = ()
    """The target's tokens that it was written with."""
    logprobs: tuple[float, ...] = ()
    """Their log-probabilities; () if they are not known."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure a model is of a window's text, in the measures of Whisper programs; None: not known.

    Names and definitions are those of openai/whisper's `DecodingResult` (`decoding.py`) and faster-whisper's
    `Segment` (`transcribe.py`). As there, all segments of a window have the figures of the window.
    """

    avg_logprob: float | None = None
    """Mean log-probability of the window's tokens, its end included."""
    no_speech_prob: float | None = None
    """Probability that nobody speaks, 0 to 1."""
    compression_ratio: float | None = None
    """Bytes of the window's text per byte of it compressed by zlib; over 2.4 it probably repeats itself."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of words shown together (a subtitle cue, a sentence); times are seconds in the file."""

    start_s: float
    end_s: float
    text: str
    words: tuple[Word, ...] = ()
    tokens: tuple[int, ...] = ()
    speaker: str | None = None
    """Who says it, where channels are heard apart."""
    confidence: Confidence = Confidence()
    """Of the window in which it begins."""
    language: str | None = None
    """Whisper code of the language that is spoken in that window."""

    def without_words(self) -> Segment:
        """Return the same without words."""
        return replace(self, words=())


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the decode loop: one target pass and what it committed."""

    tokens: tuple[int, ...]
    proposed: int
    accepted: int
    available: int
    """Draft tokens that were ready, not yet passed and within the limit when the step began."""
    ms: float
    """Wall time of the target's forward pass."""
    began_s: float = field(default=0.0, compare=False)
    """When the pass began, by the clock of the loop."""
    run: int = field(default=0, compare=False)
    """Draft tokens that were right just before it."""
    tested: int = field(default=0, compare=False)
    """Draft tokens that the committed ones put to the test, proposed or not."""
    right: int = field(default=0, compare=False)
    """As many of these were right."""
    logprobs: tuple[float, ...] = field(default=(), compare=False)
    """Log-probabilities of `tokens`; () from a target that tells none."""


@dataclass(frozen=True, slots=True)
class DecodeStats:
    """Sums over the steps of one window or of many; `+` adds them."""

    tokens: int = 0
    steps: int = 0
    proposed: int = 0
    accepted: int = 0
    drafted: int = 0
    """Tokens the drafter published for these windows."""
    encode_s: float = 0.0
    """Target encoder and prompt prefill."""
    verify_s: float = 0.0
    """Target passes of the decode loop."""
    control_s: float = 0.0
    """Alignment, budget control and bookkeeping between the passes."""
    wall_s: float = 0.0
    """Target worker time from job received to the end of the window's first decoding."""
    rescue_s: float = 0.0
    """Target worker time after that: doubtful windows are decoded again."""

    trials: tuple[int, ...] = ()
    """Draft tokens put to the test, by how many were right before (buckets of `decoding.Hazard`)."""
    right: tuple[int, ...] = ()
    """As many of these were right."""

    def __add__(self, other: DecodeStats) -> DecodeStats:
        """Field-wise sum; ratios must be taken from sums, never averaged."""
        return DecodeStats(
            *(_sum(getattr(self, name), getattr(other, name)) for name in DecodeStats.__slots__)
        )

    @property
    def tokens_per_step(self) -> float:
        """Committed tokens per target pass; 1.0 is plain decoding."""
        return self.tokens / self.steps if self.steps else 0.0

    @property
    def acceptance(self) -> float:
        """Accepted / proposed draft tokens."""
        return self.accepted / self.proposed if self.proposed else 0.0


def _sum(one: Any, other: Any) -> Any:  # noqa: ANN401 - numbers, or tuples of them
    if isinstance(one, tuple):
        return tuple(a + b for a, b in zip_longest(one, other, fillvalue=0))
    return one + other


@dataclass(frozen=True, slots=True)
class WindowTrace:
    """The time line of one window. Moments are seconds by `time.perf_counter`, the same in all processes."""

    began_s: float
    steps: tuple[Step, ...]
    max_tokens: int
    """Most tokens the target may commit."""
    waited_s: float = 0.0
    """How long the target waited for the drafter; only serial modes do."""
    draft: tuple[int, ...] = ()
    """What had been drafted by the window's end, in the target's vocabulary."""
    published_s: tuple[float, ...] = ()
    """When each draft token appeared."""
    draft_began_s: float | None = None
    """When the drafter took up the window; None if it did not, or has none."""


@dataclass(frozen=True, slots=True)
class WindowResult:
    """What the target made of one window. Word times are relative to the window's start."""

    text: str
    tokens: tuple[int, ...]
    language: str | None
    words: tuple[Word, ...] = ()
    stats: DecodeStats = field(default_factory=DecodeStats)
    looped: bool = False
    """Whether it says the same over and over, as a model does that has lost the thread."""
    unfinished: bool = False
    """Whether it reached the model's limit before its end."""
    left_out: tuple[Span, ...] = ()
    """Where in the window somebody speaks and no word was written, as far as times of words are known."""
    rescued: bool = False
    """Whether a second decoding gave a better text, or a part of it."""
    trace: WindowTrace | None = None
    """How it came about, if that was asked for."""
    logprobs: tuple[float, ...] = ()
    """Log-probabilities of `tokens`; () from a target that tells none."""
    no_speech_prob: float | None = None
    """Probability that nobody speaks, 0 to 1; None if the target does not tell."""

    @property
    def avg_logprob(self) -> float | None:
        """Mean log-probability of its tokens; None if they are not known.

        As in openai/whisper (`DecodingTask.run`), a text without an end is divided by one token more, too.
        """
        return sum(self.logprobs) / (len(self.tokens) + self.unfinished) if self.logprobs else None

    @property
    def is_doubtful(self) -> bool:
        """Whether somebody should check the text."""
        return self.looped or self.unfinished or bool(self.left_out)


@dataclass(frozen=True, slots=True)
class Transcript:
    """The finished text of one file."""

    text: str
    segments: tuple[Segment, ...]
    language: str | None
    duration_s: float
    target: str
    drafter: str | None
    task: Task = "transcribe"
    rescued: tuple[Span, ...] = ()
    """Windows for which a second decoding gave a better text."""
    cues: tuple[Segment, ...] | None = None
    """The segments as subtitles show them, lines apart by newlines; None: as they are, on one line."""
    highlights_words: bool = False
    """Whether subtitles underline the word that is spoken."""

    def without_words(self) -> Transcript:
        """Return the same with segments that have no words."""
        return replace(self, segments=tuple(segment.without_words() for segment in self.segments))
