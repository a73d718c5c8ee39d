"""The order of a run: all modes meet the same blocks of windows in turn, so that load and heat hit all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from as2d_cli.bench.modes import TARGET_ONLY, Mode
from as2d_cli.bench.run.clips import BenchWindow
from as2d_cli.bench.run.decoders import BlockDecoder, DecodedBlock, summed_peak_bytes
from as2d_cli.bench.trials import Trial, TrialStep
from as2d_cli.domain.errors import As2dError
from as2d_cli.domain.types import WindowResult, WindowTrace
from as2d_cli.engine.comparison import BLOCK

_WARM_UP = 2


@dataclass(frozen=True, slots=True, eq=False)
class Rotation:
    """What is to be measured, and by whom."""

    modes: Sequence[Mode]
    decoders: Mapping[str, BlockDecoder]
    """What decodes in each mode, by label."""
    windows: Sequence[BenchWindow]
    repeats: int
    note: Callable[[str], None]
    """Takes what the reader of the numbers must know."""
    progress: Callable[[int, int], None]
    """Takes how many blocks are done, of how many."""

    def run(self) -> Iterator[Trial]:
        """Yield the trials of each block as it is done, after a warm-up that is not counted.

        A mode that fails is left out from then on, with a note. Raises what target-only raises.
        """
        blocks = [self.windows[at : at + BLOCK] for at in range(0, len(self.windows), BLOCK)]
        left = [mode for mode in self.modes if self._try(mode, self.windows[:_WARM_UP])]
        done, total = 0, self.repeats * len(blocks)
        for repeat in range(self.repeats):
            for number, block in enumerate(blocks):
                shift = done % len(left)
                for turn, mode in enumerate([*left[shift:], *left[:shift]]):
                    decoded = self._try(mode, block)
                    if decoded is None:
                        left.remove(mode)
                    else:
                        place = _Place(mode, repeat, number, turn, self._peak(mode))
                        yield from _trials(place, block, decoded)
                done += 1
                self.progress(done, total)

    def _try(self, mode: Mode, block: Sequence[BenchWindow]) -> DecodedBlock | None:
        try:
            return self.decoders[mode.label].decode(mode, [window.task() for window in block])
        except As2dError as error:
            if mode.name == TARGET_ONLY:
                raise
            self.note(f"{mode.label} failed and is left out from there on: {error.message}")
            return None

    def _peak(self, mode: Mode) -> int | None:
        return summed_peak_bytes([os.getpid(), *self.decoders[mode.label].process_ids(mode)])


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a run a block was decoded."""

    mode: Mode
    repeat: int
    block: int
    turn: int
    peak_bytes: int | None


def _trials(place: _Place, block: Sequence[BenchWindow], decoded: DecodedBlock) -> Iterator[Trial]:
    for window, result in zip(block, decoded.results, strict=True):
        yield _trial(place, window, result, decoded.wall_s)


def _trial(place: _Place, window: BenchWindow, result: WindowResult, block_wall_s: float) -> Trial:
    mode, stats = place.mode, result.stats
    trace = result.trace or WindowTrace(0.0, (), 0)
    return Trial(
        mode=mode.label,
        kind=mode.kind,
        drafter=mode.drafter,
        cap=mode.cap,
        alone=mode.alone,
        repeat=place.repeat,
        block=place.block,
        turn=place.turn,
        block_wall_s=block_wall_s,
        file=str(window.clip.path),
        window=window.index,
        start_s=window.window.start_s,
        audio_s=window.window.duration_s,
        language=result.language,
        tokens=result.tokens,
        text=result.text,
        steps=tuple(_step(trace, number) for number in range(len(trace.steps))),
        encode_s=stats.encode_s,
        verify_s=stats.verify_s,
        control_s=stats.control_s,
        draft_s=trace.waited_s,
        wall_s=stats.wall_s,
        began_s=trace.began_s,
        max_tokens=trace.max_tokens,
        drafted=stats.drafted,
        published_ms=tuple(round((moment - trace.began_s) * 1e3, 3) for moment in trace.published_s),
        draft_began_ms=None
        if trace.draft_began_s is None
        else round((trace.draft_began_s - trace.began_s) * 1e3, 3),
        peak_bytes=place.peak_bytes,
    )


def _step(trace: WindowTrace, number: int) -> TrialStep:
    step = trace.steps[number]
    began_ms = round((step.began_s - trace.began_s) * 1e3, 3)
    return TrialStep(
        len(step.tokens), step.proposed, step.accepted, step.available, began_ms, round(step.ms, 3)
    )
