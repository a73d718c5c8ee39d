"""Decodes the same windows by a target of as2d and by faster-whisper: same weights, greedy, no fallback."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from as2d_cli.domain.types import Request, Window
from as2d_cli.engine.engine import Engine, EngineSettings
from as2d_cli.engine.messages import ModelRef
from as2d_cli.engine.run.tasks import WindowTask
from as2d_cli.models import weights
from as2d_cli.models.fetch import fetch
from as2d_cli.models.registry import ModelEntry

Windows = Sequence[Sequence[Window]]
"""The windows of each clip."""


def target_texts(
    entry: ModelEntry, requests: Sequence[Request], windows: Windows, threads: int
) -> list[list[str]]:
    """Return the text of each window of each clip, target-only."""
    texts: list[list[str]] = [[] for _ in windows]
    tasks = [
        WindowTask(index, window, request)
        for index, (request, parts) in enumerate(zip(requests, windows, strict=True))
        for window in parts
    ]
    with Engine(EngineSettings(ModelRef(entry, weights.ensure(entry), threads), None)) as engine:
        for outcome in engine.run(tasks):
            if outcome.error is not None:
                raise outcome.error
            texts[outcome.task.group].append(outcome.result.text if outcome.result else "")
    return texts


def faster_whisper_texts(
    entry: ModelEntry, requests: Sequence[Request], windows: Windows, *, threads: int, compute_type: str
) -> list[list[str]]:
    """Return the text of each window of each clip, by CTranslate2 from the same files."""
    from faster_whisper import WhisperModel

    with tempfile.TemporaryDirectory() as folder:
        source = fetch(entry, Path(folder))
        model = WhisperModel(str(source), device="cpu", compute_type=compute_type, cpu_threads=threads)
    texts: list[list[str]] = []
    for request, parts in zip(requests, windows, strict=True):
        texts.append([])
        for window in parts:
            segments, _ = model.transcribe(
                window.samples,
                language=request.language,
                task=request.task,
                beam_size=1,
                temperature=0.0,
                without_timestamps=True,
                condition_on_previous_text=False,
                compression_ratio_threshold=None,
                log_prob_threshold=None,
                no_speech_threshold=None,
            )
            texts[-1].append("".join(segment.text for segment in segments))
    return texts
