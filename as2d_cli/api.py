"""Transcription for programs: what `as2d transcribe` and `as2d translate` do, as a function.

For example:

    from as2d_cli import transcribe

    for outcome in transcribe(["talks/", "extra.mp3"], language="de", word_timestamps=True):
        if outcome.transcript:
            for segment in outcome.transcript.segments:
                print(segment.start_s, segment.text)
        else:
            print(outcome.source, outcome.error)

Outcomes and what is in them are frozen dataclasses: see `requests.FileOutcome` and `types.Transcript`.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from typing import TypeAlias

from as2d_cli.batch.inputs import find_inputs
from as2d_cli.batch.local import local_executor
from as2d_cli.batch.outputs import output_folder
from as2d_cli.batch.request import (
    BatchRequest,
    FileOutcome,
    cluster_choice,
    formats_of,
    joined_prompt,
)
from as2d_cli.batch.run import Batch
from as2d_cli.batch.work import StartExecutor
from as2d_cli.domain.languages import AUTO, language_code
from as2d_cli.models.options import declared_options, with_options
from as2d_cli.models.registry import load_registry
from as2d_cli.system.device import usable_threads
from as2d_cli.system.streams import fill_closed

StrPath: TypeAlias = str | os.PathLike[str]


def transcribe(  # noqa: PLR0913 - one parameter per option of the command
    paths: StrPath | Iterable[StrPath],
    *,
    model: str | None = None,
    drafter: str | None = None,
    language: str | None = None,
    translate_to: str | None = None,
    prompt: str | None = None,
    hotwords: str | Sequence[str] = (),
    word_timestamps: bool = False,
    vad: bool = True,
    threads: int | None = None,
    output_formats: str | Sequence[str] = (),
    output_dir: StrPath | None = None,
    overwrite: bool = False,
    engine: str = "local",
    address: str | None = None,
    **model_options: str | None,
) -> Generator[FileOutcome, None, None]:
    """Transcribe audio files one after the other; yield what became of each as soon as it is known.

    `paths` are files, folders and patterns as on the command line, `-` is standard input. `model` and
    `drafter` are names of models.toml, by default the default pair; the drafter `"none"` decodes without
    drafts, which gives the same text. `language` is a Whisper code or an English name, None detects it in
    each file; `translate_to` is the language to write in, None the one spoken. Windows are taken to follow
    `hotwords` and `prompt`; those in which nobody speaks are left out, unless `vad` is false. `threads` are
    the target's, by default as many as there are CPUs. With `output_formats` files are written as well,
    beside the inputs or below `output_dir`; inputs whose files are complete are then skipped, unless
    `overwrite`. The engine `"ray"` runs on the Ray cluster at `address`, or on one that it begins here.
    Lists may also be one text with commas, as on the command line. `model_options` are the options that
    plugins declare for their models, named as their flags in the help of `as2d transcribe`.

    Each outcome has the `source`, a `transcript` (text, language, duration and timed segments; their words
    with `word_timestamps`) or an `error`, or neither if it was skipped. One bad file does not end the run.
    Close the generator to end it early. When the first outcome is asked for, models are fetched and loaded,
    and without a `drafter` measured, once, for 20 s.

    Raises, at the first outcome: `RequestError` for what makes no sense or is not for this model,
    `RegistryError` for an unknown model, `ModelError` or `PluginError` for one that cannot be used.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    to = None if translate_to is None else language_code(translate_to)
    registry = load_registry()
    target, ahead = registry.choose(model, drafter, "translate" if to else "transcribe")
    written = output_formats.split(",") if isinstance(output_formats, str) else output_formats
    request = BatchRequest(
        inputs=find_inputs([os.fspath(path) for path in given]).found,
        target=with_options(target, model_options, declared_options()),
        drafter=ahead,
        others=registry.others_of(target, ahead),
        language=language_code(language or AUTO),
        translate_to=to,
        prompt=joined_prompt(prompt, hotwords if isinstance(hotwords, str) else ", ".join(hotwords)),
        timed=True,
        word_timestamps=word_timestamps,
        auto_budget=drafter is None,
        vad=vad,
        formats=formats_of(written) if written else (),
        folder=None if output_dir is None else output_folder(os.fspath(output_dir)),
        overwrite=overwrite,
        threads=usable_threads(threads),
        cluster=cluster_choice(engine, address, threads),
    )
    fill_closed()
    yield from _ended_at_exit(Batch(request, start=executor_for(request)).run())


def _ended_at_exit(outcomes: Generator[FileOutcome, None, None]) -> Generator[FileOutcome, None, None]:
    """Yield them; end a run that a program leaves open when it exits, while Python can still do so."""

    def end() -> None:
        with suppress(ValueError):  # at work in another thread
            outcomes.close()

    atexit.register(end)
    try:
        yield from outcomes
    finally:
        atexit.unregister(end)


def executor_for(request: BatchRequest) -> StartExecutor:
    """Return what starts the engines that a request is for: one here, or those of a Ray cluster."""
    if request.cluster is None:
        return local_executor
    from as2d_cli.cluster.executor import ray_executor  # here: only a cluster needs Ray

    return ray_executor
