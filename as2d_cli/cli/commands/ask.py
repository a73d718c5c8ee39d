"""`as2d ask`: questions about what is said, and their answers."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import TYPE_CHECKING

import typer

from as2d_cli.cli.exit_codes import ExitCode
from as2d_cli.cli.options.parameters import AskOptions, BatchOptions
from as2d_cli.cli.options.settings import configured
from as2d_cli.cli.output.messages import Messages
from as2d_cli.cli.output.showing import Showing, warn
from as2d_cli.domain.errors import RequestError

if TYPE_CHECKING:  # numpy comes with these, and help has no use for numpy
    from as2d_cli.ask.types import Answer, AskRequest
    from as2d_cli.cli.output.answers import Answers

_STDIN = "-"
NO_READER = "none"
"""Stands for no reader: the model that listens answers by itself."""
_OF_THE_READER = frozenset({"budget", "compare", "draft_tokens"})
"""Options that are about the reader's drafts, not about those of the model that listens."""


def ask(options: AskOptions) -> ExitCode:
    """Answer questions about what is said in audio files, from a transcript.

    Answers go to stdout, each with the place in the recording that it rests on, everything else to stderr.
    "Not in the recording." is an answer, too. Without -q, questions are read from standard input, one a line.
    """
    from as2d_cli.api import executor_for
    from as2d_cli.ask.from_audio import AskFromAudio
    from as2d_cli.ask.from_transcript import AskFromTranscript
    from as2d_cli.cli.output.answers import JsonAnswers, TextAnswers
    from as2d_cli.cli.output.display import TerminalDisplay

    if not options.files and options.files_from is None:
        raise typer.BadParameter("Missing argument 'FILE...'.")
    request, notes = read_ask_request(options)
    messages = Messages(quiet=options.is_quiet, verbose=options.is_verbose)
    for note in notes:
        messages.note(note)
    single = len(request.questions) == len(request.listening.inputs) == 1
    answers: Answers = JsonAnswers(request) if options.json else TextAnswers(named=not single)

    def show(answer: Answer) -> None:
        warn(messages, answer)
        answers.answer(answer)

    with TerminalDisplay(messages, bar=options.progress) as display:
        kind = AskFromTranscript if request.reader else AskFromAudio
        asking = kind(request, display, executor_for(request.listening))
        return Showing(messages, display, show, answers.report).show(asking)


app = configured(ask, AskOptions)


def read_ask_request(options: AskOptions) -> tuple[AskRequest, tuple[str, ...]]:
    """Return what is asked for, and what to tell of the search for inputs. Raises `RequestError`."""
    from as2d_cli.ask.types import AskRequest
    from as2d_cli.batch.options import RunOptions
    from as2d_cli.cli.options.request import draft_limit, draft_tokens, read_request
    from as2d_cli.models.registry import load_registry

    questions = _questions(options)
    registry = load_registry()
    shared = {
        one.name: getattr(options, one.name) for one in fields(BatchOptions) if hasattr(options, one.name)
    }
    heard = {name: value for name, value in shared.items() if name not in _OF_THE_READER}
    listening = BatchOptions(**{**heard, "json": True, "given": options.given - _OF_THE_READER})
    batch, notes = read_request(listening)
    answers_itself = batch.target.tasks is not None and batch.target.does("ask")
    if options.reader == NO_READER or (options.reader is None and answers_itself):
        reader, drafter, chosen = None, batch.drafter, options.drafter
    else:
        chosen = options.reader_drafter
        reader, drafter = registry.choose(
            options.reader or registry.default_reader, options.reader_drafter, "ask"
        )
    drafts = RunOptions(
        drafter=chosen,
        draft_limit=draft_limit(options),
        draft_tokens=draft_tokens(options),
        compare=options.compare,
    )
    if drafts.draft_limit == 0 or not (reader or drafter is None or drafter.does("ask")):
        drafter = None
    if drafter is None and options.compare:
        raise RequestError("--compare does nothing without a drafter", "choose one with --reader-drafter")
    return AskRequest(
        listening=batch,
        questions=questions,
        reader=reader,
        drafter=drafter,
        auto_budget=drafts.leaves_drafts_open,
        compare=options.compare,
        decode=drafts.decode,
    ), notes


def _questions(options: AskOptions) -> tuple[str, ...]:
    """Return the questions, each once. Raises `RequestError` if there is none."""
    from as2d_cli.batch.options import check_text
    from as2d_cli.cli.options.request import read_list

    given = list(options.question or ())
    source = options.questions
    if source is None and not given and not sys.stdin.isatty():
        source = _STDIN
    if source == _STDIN and _STDIN in (*(options.files or ()), options.files_from):
        raise RequestError("standard input cannot be both a recording and questions", "ask with -q")
    if source is not None:
        given += read_list(source, option="questions")
    asked = tuple(dict.fromkeys(text for one in given if (text := one.strip())))
    if not asked:
        raise RequestError("there is no question", "ask with -q, or give a list with --questions")
    for text in asked:
        check_text("question", text)
    return asked
