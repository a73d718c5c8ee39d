"""The plots of a run, as SVG drawings whose colours are the page's."""

from __future__ import annotations

from collections.abc import Sequence

from as2d_cli.bench.modes import AUTO
from as2d_cli.bench.report.summary import summarise, window_speedups
from as2d_cli.bench.report.svg import Scale, drawing, element, text, ticks, x_axis, y_axis
from as2d_cli.bench.trials import Staircase, Trial, labels

_WIDTH, _LEFT, _RIGHT = 900.0, 190.0, 880.0
_ROW = 24.0
_SPEEDUPS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


def speedup_plot(trials: Sequence[Trial]) -> str:
    """Draw one dot per window and mode: how much sooner than target-only it was done."""
    first, *others = labels(trials)
    plain = [trial for trial in trials if trial.mode == first]
    found = {
        mode: window_speedups([trial for trial in trials if trial.mode == mode], plain) for mode in others
    }
    every = [value for speedups in found.values() for value in speedups.values()] or [1.0]
    scale = Scale(min(*every, 0.75), max(*every, 1.5), _LEFT, _RIGHT, logarithmic=True)
    bottom = 10 + _ROW * max(len(others), 1)
    shown = [value for value in _SPEEDUPS if scale.low <= value <= scale.high]
    parts = [x_axis(scale, shown, (6, bottom), "speedup of a window over target-only (log scale)", "x")]
    parts.append(element("line", x1=scale(1), x2=scale(1), y1=6, y2=bottom, class_="one"))
    pooled = {summary.mode: summary.window_speedup for summary in summarise(trials)}
    names = {trial.window: f"{trial.file} at {trial.start_s:.1f} s" for trial in plain}
    for number, mode in enumerate(others):
        middle = 10 + _ROW * (number + 0.5)
        parts.append(element("text", text(mode), x=_LEFT - 8, y=middle + 4, text_anchor="end"))
        for window, value in found[mode].items():
            title = element("title", text(f"{names[window]}: {value:.2f}x"))
            style = "slower" if value < 1 else "faster"
            parts.append(element("circle", title, cx=scale(value), cy=middle, r=3.2, class_=style))
        place = scale(pooled[mode])
        parts.append(element("line", x1=place, x2=place, y1=middle - 9, y2=middle + 9, class_="pooled"))
    return drawing(_WIDTH, bottom + 44, "Speedup of each window by mode", *parts)


def shown_trials(trials: Sequence[Trial]) -> list[Trial]:
    """Return one repeat of the AS2D mode to show: the automatic one if it drafted, else the fastest."""
    drafted = [trial for trial in trials if trial.kind == "as2d" and not trial.alone]
    if not drafted:
        return []
    shown = [row for row in drafted if row.mode.split()[0] == AUTO]
    if not shown:
        pooled = {summary.mode: summary.batch_speedup for summary in summarise(trials)}
        best = max(labels(drafted), key=lambda mode: pooled[mode])
        shown = [trial for trial in drafted if trial.mode == best]
    last = max(trial.repeat for trial in shown)
    return [trial for trial in shown if trial.repeat == last]


def shown_window(trials: Sequence[Trial]) -> Trial | None:
    """Return the window to show: the one with most text whose draft was still being written as it began."""
    candidates = shown_trials(trials)
    live = [trial for trial in candidates if trial.published_ms and trial.published_ms[-1] > 0]
    return max(live or candidates, key=lambda trial: len(trial.tokens), default=None)


def lanes_plot(trials: Sequence[Trial]) -> str:
    """Draw the time lines of target and drafter in one window, and of the target alone in the same one."""
    shown = shown_window(trials)
    if shown is None:
        return drawing(_WIDTH, 40, "Time line", element("text", "no window was drafted", x=20, y=24))
    alone = next(
        trial for trial in trials if trial.mode == labels(trials)[0] and trial.window == shown.window
    )
    starts = (0.0, *shown.published_ms[:1], shown.draft_began_ms or 0.0)
    low, high = min(starts), max(shown.wall_s, alone.wall_s) * 1e3
    scale = Scale(low, high, _LEFT, _RIGHT)
    lanes = (("target alone", 16.0), (f"target, {shown.mode}", 60.0), ("drafter", 104.0))
    parts = [x_axis(scale, ticks(low, high), (8, 140), "ms since the target took the window up")]
    for name, top in lanes:
        parts.append(element("text", text(name), x=_LEFT - 8, y=top + 18, text_anchor="end"))
    parts += [_target_lane(alone, scale, 16.0), _target_lane(shown, scale, 60.0)]
    parts.append(_drafter_lane(shown, scale, 104.0))
    return drawing(_WIDTH, 184, f"Time line of {shown.file} at {shown.start_s:.1f} s", *parts)


def _target_lane(trial: Trial, scale: Scale, top: float) -> str:
    parts = [_bar(scale, (0.0, trial.encode_s * 1e3), top, "encode", "encoding")]
    for step in trial.steps:
        style = "step hit" if step.accepted else "step miss" if step.proposed else "step"
        title = f"{step.committed} tokens; {step.accepted} of {step.proposed} draft tokens right"
        parts.append(_bar(scale, (step.began_ms, step.began_ms + step.ms), top, style, title))
    return "".join(parts)


def _drafter_lane(trial: Trial, scale: Scale, top: float) -> str:
    if not trial.published_ms:
        return ""
    began = trial.draft_began_ms if trial.draft_began_ms is not None else trial.published_ms[0]
    parts = [
        _bar(scale, (began, trial.published_ms[-1]), top, "draft", f"{len(trial.published_ms)} draft tokens")
    ]
    parts += [
        element("line", x1=scale(ms), x2=scale(ms), y1=top, y2=top + 28, class_="token")
        for ms in trial.published_ms
    ]
    return "".join(parts)


def _bar(scale: Scale, span: tuple[float, float], top: float, style: str, title: str) -> str:
    left, right = scale(span[0]), scale(span[1])
    inner = element("title", text(f"{title}, {span[1] - span[0]:.1f} ms"))
    return element("rect", inner, x=left, y=top, width=max(right - left, 0.5), height=28, class_=style)


def staircase_plot(staircases: Sequence[Staircase]) -> str:
    """Draw what a pass of the target costs by row count, with each drafter idle and at work."""
    tables = [table for one in staircases for table in (one.idle_ms, one.busy_ms)]
    if not tables:
        return drawing(_WIDTH, 40, "Step costs", element("text", "nothing was measured", x=20, y=24))
    most_rows = max(max(table) for table in tables)
    most_ms = max(max(table.values()) for table in tables)
    across, up = Scale(0.5, most_rows + 0.5, 60, _RIGHT), Scale(0, most_ms * 1.05, 260, 10)
    parts = [
        x_axis(across, ticks(1, most_rows, 12), (10, 260), "rows of a pass: 1 + draft tokens verified"),
        y_axis(up, ticks(0, most_ms, 6), (60, _RIGHT)),
        element("text", "ms", x=60, y=8, text_anchor="end"),
    ]
    for number, one in enumerate(staircases):
        for table, style, state in ((one.idle_ms, "idle", "idle"), (one.busy_ms, "busy", "at work")):
            name = f"{one.drafter} {state}"
            line = element(
                "polyline",
                element("title", text(name)),
                points=_stairs(table, across, up),
                class_=f"stairs {style}",
            )
            label = element(
                "text", text(name), x=70, y=26 + 34 * number + (17 if state != "idle" else 0), class_=style
            )
            parts += [line, label]
    return drawing(_WIDTH, 304, "Cost of a target pass by rows", *parts)


def _stairs(table: dict[int, float], across: Scale, up: Scale) -> str:
    """Return the points of level stretches that end at each measured row count."""
    points, left = [], 0.5
    for rows, ms in sorted(table.items()):
        points += [(across(left), up(ms)), (across(rows + 0.5), up(ms))]
        left = rows + 0.5
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
