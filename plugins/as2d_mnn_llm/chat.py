"""How a model that reads is asked about a recording: a ChatML conversation, as SmolLM2 and Qwen know it.

The transcript goes first and the question last, so that the cache of the first part serves all questions
about one recording. Only the marks written here become special tokens: neither transcript nor question
can smuggle one in.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from as2d_cli.plugin import Request, RequestError, read_json
from as2d_mnn_llm.bpe import SPECIALS_FILE, LlmTokenizer

END_OF_TURN: Final = "<|im_end|>"
END_OF_TEXT: Final = "<|endoftext|>"
_BEGIN: Final = "<|im_start|>"
_SYSTEM: Final = (
    "You are given the transcript of a recording. Answer from this transcript only, in one short phrase. "
    'If the transcript does not tell, answer "Not in the recording." If you are asked to rewrite, '
    "summarise, quote or translate, do just that."
)


_FILE: Final = "chat.json"
_SWITCH: Final = "enable_thinking"
"""What the templates of models that think unless they are told not to, as Qwen3's, ask for."""


def write_chat(template: str, folder: Path) -> None:
    """Write into `folder` what a conversation must have besides its marks, by the model's own template."""
    (folder / _FILE).write_text(json.dumps({"thinks": _SWITCH in template}), encoding="utf-8")


def thinks(folder: Path) -> bool:
    """Tell whether the converted model in `folder` thinks before it answers unless it is told not to."""
    try:
        return read_json(folder / _FILE).get("thinks") is True
    except (OSError, ValueError):  # of a model that was converted when this file was not yet written
        return "<think>" in read_json(folder / SPECIALS_FILE)


@dataclass(frozen=True, slots=True)
class Conversation:
    """The ids of a prompt in two parts: `passage` is the same for all questions about it."""

    passage: tuple[int, ...]
    question: tuple[int, ...]


def conversation(tokenizer: LlmTokenizer, request: Request, *, thinks: bool = False) -> Conversation:
    """Return the prompt for a request that has a passage and a question.

    To a model that `thinks` the answer begins with a thought that is over, as its template has it: its
    thoughts would be thousands of tokens. Raises `RequestError`.
    """
    if request.task != "ask" or request.question is None or request.passage is None:
        raise RequestError("a model that reads needs a question and a text", "use: as2d ask FILE -q QUESTION")
    begin, end = tokenizer.special(_BEGIN), tokenizer.special(END_OF_TURN)
    encode = tokenizer.encode
    system = (begin, *encode(f"system\n{_SYSTEM}"), end, *encode("\n"))
    passage = (begin, *encode(f'user\nTranscript:\n"""\n{request.passage.strip()}\n"""\n\n'))
    question = (*encode(request.question.strip()), end, *encode("\n"), begin, *encode("assistant\n"))
    if thinks:
        over = (tokenizer.special("<think>"), *encode("\n\n"), tokenizer.special("</think>"), *encode("\n\n"))
        question = (*question, *over)
    return Conversation((*system, *passage), question)


def fixed_tokens(tokenizer: LlmTokenizer, *, thinks: bool = False) -> int:
    """Return how many tokens a prompt has besides the passage and the question."""
    empty = conversation(tokenizer, Request(task="ask", question="", passage=""), thinks=thinks)
    return len(empty.passage) + len(empty.question)
