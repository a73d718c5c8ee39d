"""Times a loaded model where it runs: what a worker does when asked what its device makes of it.

Works through the same protocols as decoding does, so any plugin can be measured. The input is noise:
it takes as long as speech, and what the model makes of it does not matter.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from as2d_cli.decoding import StepCosts
from as2d_cli.decoding.protocols import Drafter, ScoringSession, SessionDrafter, Target, TargetSession
from as2d_cli.domain.types import NOTHING_HEARD, Features, FeatureSpec, Request

T = TypeVar("T")

ROWS = (1, 2, 3, 5, 8, 9, 12, 16, 24)
"""Row counts whose cost is measured: the stairs of every CPU seen lie at some of them. `StepCosts` has
knots at all but two, so what it puts between them never undercuts what was measured."""
SHORT_TOKENS, LONG_TOKENS = 16, 160
"""Cached tokens after the prompt at which steps are measured: the beginning and the end of a dense window."""
_SLOW_S = 3.0
"""A window that takes longer to open is not opened only to warm up, and a round that ends later than this
after the time allowed is the last: a model of billions of weights would be measured for minutes."""
_PASSES = 2
"""Passes of each row count in a round: they cost little beside encoding, and one is easily disturbed."""
_BLUR_MS = 0.2
"""Differences of this order say nothing about how even repeats are."""
_DRAFT_TOKENS = 24
_CHECKED_TOKENS = 24
_SCORED_TOKENS = 8
_PASSAGE = (
    "The committee met on Tuesday. It looked at the plan for the new bridge, which is to cost less than the "
    "old one did, and asked the engineers when it could be opened. They said that a year was enough."
)


@dataclass(frozen=True, slots=True)
class TargetCosts:
    """Milliseconds of the target's work, lower quartiles; memory in bytes."""

    encode_ms: float
    """Encoder and prompt of one window."""
    short_ms: Mapping[int, float]
    """One pass by row count, few tokens cached."""
    long_ms: Mapping[int, float]
    """One pass by row count, many tokens cached."""
    row_invariant: bool
    """Whether rows decided together and one by one were the same tokens."""
    peak_bytes: int
    row_epsilon: float | None = None
    """Largest difference of their logits; None if the target does not tell logits."""
    spread: float = 1.0
    """How many times as long as the lower quartile the median of a pass's repeats took, usually."""

    def step_ms(self) -> dict[int, float]:
        """Cost by row count half-way between few and many cached tokens."""
        return {rows: (ms + self.long_ms[rows]) / 2 for rows, ms in self.short_ms.items()}

    def scaled(self, factor: float) -> TargetCosts:
        """Return the costs of a device that takes `factor` times as long."""
        return replace(
            self,
            encode_ms=self.encode_ms * factor,
            short_ms={rows: ms * factor for rows, ms in self.short_ms.items()},
            long_ms={rows: ms * factor for rows, ms in self.long_ms.items()},
        )


@dataclass(frozen=True, slots=True)
class DraftCosts:
    """Milliseconds of the drafter's work, lower quartiles; memory in bytes."""

    encode_ms: float
    token_ms: float
    peak_bytes: int

    def scaled(self, factor: float) -> DraftCosts:
        """Return the costs of a device that takes `factor` times as long."""
        return replace(self, encode_ms=self.encode_ms * factor, token_ms=self.token_ms * factor)


@dataclass(frozen=True, slots=True)
class PairCosts:
    """Both models of a pair, each alone and each beside the other at work."""

    target: TargetCosts
    target_busy: TargetCosts
    drafter: DraftCosts
    drafter_busy: DraftCosts
    decode_threads: int
    """Threads of the target's passes; its encoder always has all of the target's."""

    def scaled(self, factor: float) -> PairCosts:
        """Return the costs of a device that takes `factor` times as long."""
        return PairCosts(
            self.target.scaled(factor),
            self.target_busy.scaled(factor),
            self.drafter.scaled(factor),
            self.drafter_busy.scaled(factor),
            self.decode_threads,
        )

    def steps(self) -> StepCosts:
        """Costs of target passes for the controller, with the drafter idle and at work."""
        return StepCosts(self.target.step_ms(), self.target_busy.step_ms())


def measure_target(target: Target, seconds: float, *, rounds: int = 2, warm: bool = False) -> TargetCosts:
    """Measure until `seconds` are over and every pass was timed `rounds` times.

    The first window also pays for memory and for new shapes. So it counts only if the model is `warm`, or too
    slow to open a window only to warm up. The rows of a warm model are not compared again.
    """
    timing = _TargetTiming(target)
    timing.open_window()
    deadline = time.perf_counter() + seconds
    is_slow = timing.encode_ms[0] > _SLOW_S * 1e3
    if not (is_slow or warm):
        timing.encode_ms.clear()
        timing.open_window()
    passes = 1 if is_slow else _PASSES
    timing.time_passes(passes)
    while not _is_enough(time.perf_counter() - deadline, timing.times_each_pass >= rounds):
        if not is_slow:
            timing.open_window()
        timing.time_passes(passes)
    return timing.costs(compare_rows=not warm)


def _is_enough(late_s: float, has_all_rounds: bool) -> bool:
    return late_s > _SLOW_S or (late_s > 0 and has_all_rounds)


class _TargetTiming:
    """Opens windows of noise, and runs passes of every row count in the last one; keeps what each took."""

    def __init__(self, target: Target) -> None:
        spec = target.spec
        features, request = _noise(spec.features), _request(spec.features, spec.languages)
        self._open = partial(target.open, features, request)
        self._session: TargetSession
        self._pass_ms: dict[tuple[int, int], list[float]] = defaultdict(list)  # by tokens cached, rows
        self.encode_ms: list[float] = []
        """What each window took to open."""

    @property
    def times_each_pass(self) -> int:
        """How often a pass of each row count has been timed."""
        return len(self._pass_ms[SHORT_TOKENS, ROWS[0]])

    def open_window(self) -> None:
        """Time encoder and prompt."""
        self._session = _timed(self._open, self.encode_ms)

    def time_passes(self, times: int) -> None:
        """Time a pass of each row count so many times, with few and then with many tokens cached."""
        for cached in (SHORT_TOKENS, LONG_TOKENS):
            length = _fill_cache(self._session, cached)
            for rows in ROWS * times:
                _timed(partial(self._session.forward, [0] * rows), self._pass_ms[cached, rows])
                self._session.rollback(length)

    def costs(self, *, compare_rows: bool) -> TargetCosts:
        """Return what was measured; with `compare_rows`, look whether rows together and one by one agree."""
        return TargetCosts(
            encode_ms=_usual(self.encode_ms),
            short_ms={rows: _usual(self._pass_ms[SHORT_TOKENS, rows]) for rows in ROWS},
            long_ms={rows: _usual(self._pass_ms[LONG_TOKENS, rows]) for rows in ROWS},
            row_invariant=_is_row_invariant(self._session) if compare_rows else True,
            peak_bytes=peak_bytes(),
            row_epsilon=_row_epsilon(self._session) if compare_rows else None,
            spread=float(np.median([_spread(times_ms) for times_ms in self._pass_ms.values()])),
        )


def measure_drafter(drafter: Drafter, is_enough: Callable[[], bool]) -> DraftCosts:
    """Measure at least two windows, after one that does not count, and go on until `is_enough`."""
    languages = drafter.spec.languages or ("en",)
    features, request = _noise(drafter.spec.features), _request(drafter.spec.features, languages)
    list(_paces(drafter, features, request))
    encode: list[float] = []
    tokens: list[float] = []
    while len(encode) < 2 or not is_enough():
        for number, ms in enumerate(_paces(drafter, features, request)):
            (tokens if number else encode).append(ms)
    # a drafter that wrote nothing for noise: its encoder bounds what a token costs
    return DraftCosts(_usual(encode), _usual(tokens or encode), peak_bytes())


def _paces(drafter: Drafter, features: Features, request: Request) -> Iterable[float]:
    """Yield the ms to the first token of a draft, then between tokens.

    A drafter that can be told how to go on writes a text of fixed length; another one writes what the
    noise makes it write.
    """
    paces: list[float] = []
    if isinstance(drafter, SessionDrafter):
        session = _timed(partial(drafter.open, features, request), paces)
        for _ in range(_DRAFT_TOKENS):
            _timed(lambda: session.forward([session.prompt[-1]]), paces)
        return paces
    draft = drafter.draft(features, request)
    while len(paces) <= _DRAFT_TOKENS and _timed(lambda: next(draft, None), paces) is not None:
        pass
    return paces


def _fill_cache(session: TargetSession, tokens: int) -> int:
    """Bring the cache to `tokens` after the prompt, in passes of the largest row count; return its length."""
    length = len(session.prompt) - 1 + tokens
    while session.length < length:
        session.forward([0] * min(ROWS[-1], length - session.length))
    session.rollback(length)
    return length


def _is_row_invariant(session: TargetSession) -> bool:
    """Decide some rows together and one by one; they must be the same tokens."""
    length = _fill_cache(session, SHORT_TOKENS)
    tokens = list(range(_CHECKED_TOKENS))
    together = session.forward(tokens).tolist()
    session.rollback(length)
    return bool(together == [int(session.forward([token])[0]) for token in tokens])


def _row_epsilon(session: TargetSession) -> float | None:
    """Return by how much logits of rows in one pass and one by one differ at most; None if it tells none."""
    if not isinstance(session, ScoringSession):
        return None
    length = _fill_cache(session, SHORT_TOKENS)
    tokens = list(range(_SCORED_TOKENS))
    together = session.scores(tokens)
    session.rollback(length)
    one_by_one = np.concatenate([session.scores([token]) for token in tokens])
    return float(np.abs(together - one_by_one).max())


def _request(spec: FeatureSpec, languages: Sequence[str]) -> Request:
    """Return what is asked while measuring: of a model that reads, something about a short passage."""
    if spec == NOTHING_HEARD:
        return Request(task="ask", question="What is it about?", passage=_PASSAGE)
    return Request(language=languages[0] if languages else None)


def _noise(spec: FeatureSpec) -> Features:
    return np.random.default_rng(0).standard_normal(spec.shape, dtype=np.float32)


def _timed(call: Callable[[], T], into: list[float]) -> T:
    began = time.perf_counter()
    result = call()
    into.append((time.perf_counter() - began) * 1e3)
    return result


def _usual(times_ms: list[float]) -> float:
    """Return the lower quartile: what it takes when nothing else disturbs, yet not by a lucky moment."""
    return float(np.quantile(times_ms, 0.25))


def _spread(times_ms: list[float]) -> float:
    return (float(np.median(times_ms)) + _BLUR_MS) / (_usual(times_ms) + _BLUR_MS)


def peak_bytes() -> int:
    """Return the most memory that this process has used so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def peak_bytes_of(process: int) -> int | None:
    """Return the most memory that another process has used so far; None where the system does not tell."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0)
