"""Puts the speech of a file's channels together by time, each with its channel as the speaker."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from as2d_cli.domain.types import Segment, Span, WindowResult
from as2d_cli.transcripts.segments import DEFAULT_LIMITS, Segmenter, SegmentLimits, join_texts


class SpeakerSegmenter:
    """A `Segmenter` for each channel, with their segments in the order in which they start.

    Windows must come in the order of their starts. Without channels it is as a single `Segmenter`.
    """

    def __init__(self, duration_s: float = math.inf, limits: SegmentLimits = DEFAULT_LIMITS) -> None:
        """Begin a file of `duration_s`; without it, the windows' own ends bound the times."""
        self._duration_s, self._limits = duration_s, limits
        self._segmenters: dict[int | None, Segmenter] = {}
        self._waiting: list[Segment] = []

    def add(self, window: Span, result: WindowResult) -> list[Segment]:
        """Take the next window; return the segments that are complete now, up to the first that is not."""
        channel = window.channel
        segmenter = self._segmenters.setdefault(channel, Segmenter(self._duration_s, self._limits))
        complete = segmenter.add(window, result)
        if channel is None:
            return complete
        self._waiting += _said_in(channel, complete)
        return self._due(min(window.start_s, *(one.begun_s for one in self._segmenters.values())))

    def finish(self) -> list[Segment]:
        """Return the segments that remain: nothing follows."""
        for channel, segmenter in self._segmenters.items():
            self._waiting += _said_in(channel, segmenter.finish())
        return self._due(math.inf)

    def _due(self, before_s: float) -> list[Segment]:
        """Return, and forget, what starts before this time."""
        due = [segment for segment in self._waiting if segment.start_s < before_s]
        self._waiting = [segment for segment in self._waiting if segment.start_s >= before_s]
        return sorted(due, key=lambda segment: segment.start_s)


def _said_in(channel: int | None, segments: Iterable[Segment]) -> Iterator[Segment]:
    """Yield the segments with the channel, if there is one, as their speaker."""
    speaker = None if channel is None else f"Channel {channel}"
    return (replace(segment, speaker=speaker) for segment in segments)


def segment(
    parts: Iterable[tuple[Span, WindowResult]],
    duration_s: float,
    limits: SegmentLimits = DEFAULT_LIMITS,
) -> tuple[Segment, ...]:
    """Return the segments of a whole file; see `SpeakerSegmenter`."""
    segmenter = SpeakerSegmenter(duration_s, limits)
    complete = [one for window, result in parts for one in segmenter.add(window, result)]
    return (*complete, *segmenter.finish())


def turns(segments: Sequence[Segment]) -> Iterator[str]:
    """Yield what is said by one speaker after the other, with the name of each.

    >>> [*turns([Segment(0, 1, "Well?", speaker="A"), Segment(1, 2, "Yes.", speaker="B")])]
    ['A: Well?', 'B: Yes.']
    """
    for speaker, told in groupby(segments, key=lambda segment: segment.speaker):
        yield f"{speaker}: {join_texts(segment.text for segment in told)}"
