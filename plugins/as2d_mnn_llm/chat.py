"""How a model that reads is asked about a recording: a conversation in the form that it was trained on.

The transcript goes first and the question last, so that the cache of the first part serves all questions
about one recording. Only the marks written here become special tokens: neither transcript nor question
can smuggle one in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from as2d_cli.plugin import ModelError, Request, RequestError, read_json
from as2d_mnn_llm.bpe import SPECIALS_FILE, LlmTokenizer

_SYSTEM: Final = (
    "You are given the transcript of a recording. Answer from this transcript only, in one short phrase. "
    'If the transcript does not tell, answer "Not in the recording." If you are asked to rewrite, '
    "summarise, quote or translate, do just that."
)
_FILE: Final = "chat.json"


@dataclass(frozen=True, slots=True)
class Form:
    """The marks of a conversation; texts that are marks are special tokens."""

    begin: str
    end: str
    end_of_text: str
    answerer: str = "assistant"
    has_system: bool = True
    """Whether what the model is to be has a turn of its own; without, the user's turn begins with it."""
    opening: tuple[str, ...] = ()
    """Marks before the first turn."""
    thought: tuple[str, ...] = ()
    """Marks around the thought, which is over when the answer begins: it would be thousands of tokens."""


CHATML: Final = Form("<|im_start|>", "<|im_end|>", "<|endoftext|>")
_FORMS: Final[Mapping[str, Form]] = {
    "chatml": CHATML,
    "qwen3": Form("<|im_start|>", "<|im_end|>", "<|endoftext|>", thought=("<think>", "</think>")),
    "gemma": Form("<start_of_turn>", "<end_of_turn>", "<eos>", "model", has_system=False, opening=("<bos>",)),
}
MARKS: Final = frozenset({mark for form in _FORMS.values() for mark in (form.begin, form.end, *form.opening)})
"""What must never come of a text."""
_TOLD_BY: Final = {"<start_of_turn>": "gemma", "enable_thinking": "qwen3", "<|im_start|>": "chatml"}
"""What a template of each form has, and none of those after it asks for something else."""


def write_form(source: Path, template: str, folder: Path) -> None:
    """Write into `folder` which form a conversation must have by the template of the file `source`.

    A file without a template is taken for ChatML. Raises `ModelError` for a template of another form.
    """
    name = next((form for mark, form in _TOLD_BY.items() if mark in template), "" if template else "chatml")
    if not name:
        raise ModelError(f"{source}: its chat template is of no known form", f"known: {', '.join(_FORMS)}")
    (folder / _FILE).write_text(json.dumps({"form": name}), encoding="utf-8")


def read_form(folder: Path) -> Form:
    """Return the form of a conversation with the converted model in `folder`. Raises `ModelError`."""
    try:
        name = read_json(folder / _FILE).get("form")
    except OSError:  # of a model that was converted when this file was not yet written
        name = "qwen3" if "<think>" in read_json(folder / SPECIALS_FILE) else "chatml"
    except ValueError:
        name = None
    if name not in _FORMS:
        raise ModelError(f"{folder / _FILE}: no form of a conversation", "as2d models verify")
    return _FORMS[str(name)]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The ids of a prompt in two parts: `passage` is the same for all questions about it."""

    passage: tuple[int, ...]
    question: tuple[int, ...]


def conversation(tokenizer: LlmTokenizer, request: Request, form: Form) -> Conversation:
    """Return the prompt for a request that has a passage and a question. Raises `RequestError`."""
    if request.task != "ask" or request.question is None or request.passage is None:
        raise RequestError("a model that reads needs a question and a text", "use: as2d ask FILE -q QUESTION")
    special, encode = tokenizer.special, tokenizer.encode
    begin, end = special(form.begin), special(form.end)
    if form.has_system:
        system = (begin, *encode(f"system\n{_SYSTEM}"), end, *encode("\n"))
        first = "user\n"
    else:
        system, first = (), f"user\n{_SYSTEM}\n\n"
    transcript = f'{first}Transcript:\n"""\n{request.passage.strip()}\n"""\n\n'
    passage = (*map(special, form.opening), *system, begin, *encode(transcript))
    turn = (*encode(request.question.strip()), end, *encode("\n"), begin, *encode(f"{form.answerer}\n"))
    thought = [token for mark in form.thought for token in (special(mark), *encode("\n\n"))]
    return Conversation(passage, (*turn, *thought))


def fixed_tokens(tokenizer: LlmTokenizer, form: Form) -> int:
    """Return how many tokens a prompt has besides the passage and the question."""
    empty = conversation(tokenizer, Request(task="ask", question="", passage=""), form)
    return len(empty.passage) + len(empty.question)
