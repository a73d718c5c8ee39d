"""Checks the promise that everything rests on: no mode changes a token."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from as2d_cli.bench.trials import Trial


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where a mode's text is not the target's own."""

    mode: str
    file: str
    start_s: float
    repeat: int
    place: int
    """Index of the first token that differs."""
    expected: int | None
    found: int | None
    """Token there; None where the text has ended."""

    def __str__(self) -> str:
        return (
            f"{self.mode} gives another text than the target alone: {self.file} at {self.start_s:.1f} s, "
            f"repeat {self.repeat + 1}, token {self.place}: {self.found} instead of {self.expected}"
        )


def first_difference(trials: Iterable[Trial]) -> Difference | None:
    """Return the first difference in the order of the run; the first mode is right by definition."""
    trials = list(trials)
    truth: dict[int, Trial] = {}
    for trial in trials:
        if trial.mode == trials[0].mode:
            truth.setdefault(trial.window, trial)
    return next(
        (
            _difference(trial, truth[trial.window])
            for trial in trials
            if trial.tokens != truth[trial.window].tokens
        ),
        None,
    )


def _difference(trial: Trial, right: Trial) -> Difference:
    found, expected = trial.tokens, right.tokens
    place = next(
        (index for index, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b),
        min(len(found), len(expected)),
    )
    return Difference(
        mode=trial.mode,
        file=trial.file,
        start_s=trial.start_s,
        repeat=trial.repeat,
        place=place,
        expected=expected[place] if place < len(expected) else None,
        found=found[place] if place < len(found) else None,
    )
