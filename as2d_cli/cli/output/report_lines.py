"""What a run did and how fast, in a few lines of text."""

from __future__ import annotations

from as2d_cli.batch.report import NodeReport, RunReport
from as2d_cli.engine.comparison import Comparison
from as2d_cli.profile.plan import DraftPlan

_FAR_APART = 1.3
"""Factor between prediction and measurement that is told of."""


_SHOWN_SHARE = 0.005
"""Share of the time that rescue takes at least where it did anything."""


def lines_of(report: RunReport) -> list[str]:
    """Return the report as text, an ending in doubt last so that it is seen."""
    lines = [_files(report)]
    if report.stats.steps:
        lines += [_speed(report), _decoding(report), _time(report)]
    if report.plan is not None:
        lines += [_plan(report, report.plan), *_doubts(report)]
    lines += map(_node, report.nodes)
    if report.silent_windows:
        lines.append(f"{_count(report.silent_windows, 'window')} without speech not decoded")
    if report.rescued_windows:
        lines.append(f"rescued: {_count(report.rescued_windows, 'window')}")
    if report.doubtful_windows:
        count = _count(report.doubtful_windows, "window")
        lines.append(f"{count} in a loop, without an end or with words missing: see the warnings")
    if report.comparison is not None:
        lines += _comparison(report.comparison)
        lines += [f"DIFFERENT TEXT with drafts: {where}" for where in report.differing]
    return lines


def _files(report: RunReport) -> str:
    parts = [f"{report.done} of {_count(report.files, report.noun)} done"]
    parts += [f"{report.skipped} skipped"] if report.skipped else []
    parts += [f"{report.failed} failed"] if report.failed else []
    parts += ["stopped at the first failure"] if report.stopped else []
    return ("interrupted: " if report.interrupted else "") + ", ".join(parts)


def _time(report: RunReport) -> str:
    """Return what the time went to. Most runs rescue nothing."""
    shown = [
        (name, share) for name, share in report.shares.items() if name != "rescue" or share > _SHOWN_SHARE
    ]
    return f"time: {', '.join(f'{name} {share:.0%}' for name, share in shown)}"


def _speed(report: RunReport) -> str:
    if not report.audio_s:  # a model that reads
        return f"{report.wall_s:.1f} s, model loaded in {report.load_s:.1f} s"
    line = (
        f"{report.audio_s:.1f} s of audio in {report.wall_s:.1f} s ({report.rtfx:.1f}x real time), "
        f"models loaded in {report.load_s:.1f} s"
    )
    if report.nodes or report.threads is None:
        return line
    return f"{line}; {_count(report.engines, 'engine')} with {_count(report.threads, 'thread')}"


def _decoding(report: RunReport) -> str:
    stats = report.stats
    refused = report.plan is not None and not report.plan.drafting
    drafter = None if refused else report.drafter
    runs_as = f" ({report.runs_as})" if report.runs_as else ""
    line = f"target {report.target}{runs_as}, drafter {drafter or 'none'}"
    if report.refused:
        line += f" ({report.refused})"
    if drafter and report.drafter_lost:
        line += " (lost)"
    if drafter and not stats.proposed:
        line += " (unused)"
    if not stats.proposed:
        return line
    return (
        f"{line}: {stats.tokens_per_step:.2f} tokens per step, "
        f"{stats.acceptance:.0%} of proposed tokens accepted"
    )


def _plan(report: RunReport, plan: DraftPlan) -> str:
    """Say what was chosen for this device and why, and what was measured beside what had been predicted."""
    line = f"chosen for this device: {_choice(plan)}: {plan.reason}"
    if not report.predicted_plain_s or report.comparison:
        return line
    line += f"; measured {report.stats.wall_s:.1f} s"
    if plan.drafting and (without := report.without_drafts_s):
        number = _count(report.draft_sums.plain_windows, "window")
        line += f", without drafts about {without:.1f} s by {number}"
    plain = report.predicted_plain_s
    drafted = f"{plain * (1 - plan.saving):.1f} s, " if plan.drafting else ""
    return f"{line}; the profile predicted {drafted}without drafts {plain:.1f} s"


def _doubts(report: RunReport) -> list[str]:
    """Say where the profile was far off, and what was done about it and about drafts that lost."""
    sums, off = report.draft_sums, report.misprediction
    lines = []
    if off > _FAR_APART or sums.dropped_profiles:
        done = "dropped, to be measured anew" if sums.dropped_profiles else "kept for now"
        lines.append(f"the profile's prediction without drafts was {off:.1f}x off: the profile is {done}")
    if sums.paused_windows:
        windows = _count(sums.paused_windows, "window")
        lines.append(f"drafts were paused for {windows}, as they had come to cost time")
    return lines


def _node(node: NodeReport) -> str:
    """Say how fast a node was, and what was chosen for it."""
    line = (
        f"node {node.name}: {_count(node.engines, 'engine')} with {_count(node.threads, 'thread')}, "
        f"{node.audio_s:.1f} s of audio ({node.rtfx:.1f}x real time)"
    )
    return line if node.plan is None else f"{line}; {_choice(node.plan)}: {node.plan.reason}"


def _choice(plan: DraftPlan) -> str:
    if not plan.drafting:
        return "no drafts"
    threads = f", passes on {_count(plan.decode_threads, 'thread')}" if plan.decode_threads else ""
    return f"{plan.drafter}, up to {plan.cap} draft tokens per step{threads}"


def _comparison(found: Comparison) -> list[str]:
    verdict = "identical" if found.identical == found.windows else "NOT IDENTICAL"
    lines = [f"compare: {verdict}, {found.identical} of {_count(found.windows, 'window')} the same text"]
    if found.undecided:
        lines.append(f"compare: {_count(found.undecided, 'window')} FAILED one of the two ways")
    if found.windows:
        lines.append(
            f"compare: speedup {found.speedup:.2f}x ({_pace(found.speedup)}), "
            f"{found.drafted_s:.1f} s against {found.plain_s:.1f} s; "
            f"{_count(found.slower, 'window')} slower"
        )
    return lines


def _pace(speedup: float) -> str:
    """Say plainly what the figure, as printed, means."""
    shown = round(speedup, 2)
    if shown == 1:
        return "no faster than target-only"
    return f"{'faster' if shown > 1 else 'slower'} than target-only"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
