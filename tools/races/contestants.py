"""The programs that are compared, each loaded once and asked for one file at a time.

All run the same weights, greedily, without fallback to other temperatures, without the text before as a
prompt, told the language, on the same number of threads. Voice detection is off, but for faster-whisper's
batched mode, which cuts audio by it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import ggml

from as2d_cli.batch.display import Display
from as2d_cli.batch.pipeline import Pipeline
from as2d_cli.batch.session import Models, load_models
from as2d_cli.domain.types import Request
from as2d_cli.models.fetch import fetch
from as2d_cli.models.options import declared_options, with_options
from as2d_cli.models.registry import ModelEntry, load_registry


@dataclass(frozen=True, slots=True)
class Setting:
    """What every contestant is given: the model, a folder for its other forms, and threads."""

    model: str
    folder: Path
    threads: int

    @property
    def entry(self) -> ModelEntry:
        """What the registry says of the model."""
        return load_registry().model(self.model)

    @property
    def checkpoint(self) -> Path:
        """The folder of the weights as CTranslate2 reads them, fetched if need be."""
        folder = self.folder / "checkpoint"
        if not (folder / "config.json").is_file():
            folder.mkdir(parents=True, exist_ok=True)
            fetch(self.entry, folder)
        return folder


@dataclass(frozen=True, slots=True)
class Heard:
    """What a contestant made of a file; `segments` is how many it gave times to."""

    text: str
    segments: int


class Contestant(ABC):
    """A loaded program."""

    @abstractmethod
    def transcribe(self, path: Path, language: str | None, *, timed: bool) -> Heard:
        """Read and transcribe a file; with `timed`, in segments with times."""

    def close(self) -> None:  # noqa: B027 - not all have something
        """Give back what would outlive the process."""


class As2d(Contestant):
    """As2d's own pipeline and processes, reading one file at a time."""

    def __init__(self, setting: Setting, drafter: str | None = "none", context: str | None = None) -> None:
        """Load the models; drafter None: what the profile chooses."""
        entry, ahead = load_registry().choose(setting.model, drafter)
        entry = with_options(entry, {"context": context}, declared_options())
        wanted = Models(entry, ahead, setting.threads, auto_budget=True)
        self._life = ExitStack()  # as long as the process's
        models = self._life.enter_context(load_models(wanted, Display()))
        models.choose_plan()
        self._engine = models.engine

    def transcribe(self, path: Path, language: str | None, *, timed: bool) -> Heard:
        """Read and transcribe a file. Raises what reading or decoding raised."""
        request = Request(language=language, word_times=timed)
        work = next(iter(Pipeline(self._engine, vad=False).run([path], request)))
        if work.error is not None:
            raise work.error
        transcript = work.transcript(request, "", None)
        return Heard(transcript.text, len(transcript.segments))

    def close(self) -> None:
        """End the models' processes."""
        self._engine.close()


class FasterWhisper(Contestant):
    """faster-whisper, sequential or batched."""

    def __init__(self, setting: Setting, compute_type: str, batch_size: int = 0) -> None:
        """Load with this type of weights; a batch size means its batched pipeline."""
        from faster_whisper import BatchedInferencePipeline, WhisperModel

        self._model = WhisperModel(
            str(setting.checkpoint), device="cpu", compute_type=compute_type, cpu_threads=setting.threads
        )
        self._options: dict[str, Any] = {"vad_filter": False}
        if batch_size:
            self._model = BatchedInferencePipeline(self._model)
            self._options = {"vad_filter": True, "batch_size": batch_size}

    def transcribe(self, path: Path, language: str | None, *, timed: bool) -> Heard:
        """Read and transcribe a file."""
        segments, _ = self._model.transcribe(
            str(path),
            language=language,
            beam_size=1,
            best_of=1,
            temperature=0.0,
            condition_on_previous_text=False,
            compression_ratio_threshold=None,
            log_prob_threshold=None,
            no_speech_threshold=None,
            without_timestamps=not timed,
            **self._options,
        )
        texts = [segment.text for segment in segments]
        return Heard("".join(texts), len(texts))


class WhisperCpp(Contestant):
    """whisper.cpp, by pywhispercpp; audio is read with PyAV, as faster-whisper does."""

    def __init__(self, setting: Setting, kind: str) -> None:
        """Load weights of this kind, which are written first if need be."""
        from pywhispercpp.model import Model

        path = setting.folder / f"ggml-{kind}.bin"
        if not path.is_file():
            ggml.convert(setting.checkpoint, path, kind)
        self._model = Model(
            str(path),
            redirect_whispercpp_logs_to=None,
            n_threads=setting.threads,
            no_context=True,
            temperature_inc=0.0,
            greedy={"best_of": 1},
            suppress_nst=True,  # as the other two, by Whisper's own list
            print_progress=False,
        )

    def transcribe(self, path: Path, language: str | None, *, timed: bool) -> Heard:
        """Read and transcribe a file."""
        from faster_whisper.audio import decode_audio

        segments = self._model.transcribe(
            decode_audio(str(path)), language=language or "auto", no_timestamps=not timed
        )
        texts = [segment.text for segment in segments]
        return Heard(" ".join(texts), len(texts))


CONTESTANTS: Mapping[str, Callable[[Setting], Contestant]] = {
    "as2d": As2d,
    "as2d-fitted": partial(As2d, context="fitted"),
    "as2d-auto": partial(As2d, drafter=None),
    "faster-whisper-int8": partial(FasterWhisper, compute_type="int8"),
    "faster-whisper-int8-batched": partial(FasterWhisper, compute_type="int8", batch_size=8),
    "faster-whisper-float32": partial(FasterWhisper, compute_type="float32"),
    **{f"whisper.cpp-{kind}": partial(WhisperCpp, kind=kind) for kind in ggml.KINDS},
}
