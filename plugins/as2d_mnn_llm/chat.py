"""How a model that reads is asked about a recording: a ChatML conversation, as SmolLM2 and Qwen2.5 know it.

The transcript goes first and the question last, so that the cache of the first part serves all questions
about one recording. Only the marks written here become special tokens: neither transcript nor question
can smuggle one in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from as2d_cli.plugin import Request, RequestError
from as2d_mnn_llm.bpe import LlmTokenizer

END_OF_TURN: Final = "<|im_end|>"
END_OF_TEXT: Final = "<|endoftext|>"
_BEGIN: Final = "<|im_start|>"
_SYSTEM: Final = (
    "You are given the transcript of a recording. Answer from this transcript only, in one short phrase. "
    'If the transcript does not tell, answer "Not in the recording." If you are asked to rewrite, '
    "summarise, quote or translate, do just that."
)


@dataclass(frozen=True, slots=True)
class Conversation:
    """The ids of a prompt in two parts: `passage` is the same for all questions about it."""

    passage: tuple[int, ...]
    question: tuple[int, ...]


def conversation(tokenizer: LlmTokenizer, request: Request) -> Conversation:
    """Return the prompt for a request that has a passage and a question. Raises `RequestError`."""
    if request.task != "ask" or request.question is None or request.passage is None:
        raise RequestError("a model that reads needs a question and a text", "use: as2d ask FILE -q QUESTION")
    begin, end = tokenizer.special(_BEGIN), tokenizer.special(END_OF_TURN)
    encode = tokenizer.encode
    system = (begin, *encode(f"system\n{_SYSTEM}"), end, *encode("\n"))
    passage = (begin, *encode(f'user\nTranscript:\n"""\n{request.passage.strip()}\n"""\n\n'))
    question = (*encode(request.question.strip()), end, *encode("\n"), begin, *encode("assistant\n"))
    return Conversation((*system, *passage), question)


def fixed_tokens(tokenizer: LlmTokenizer) -> int:
    """Return how many tokens a prompt has besides the passage and the question."""
    empty = conversation(tokenizer, Request(task="ask", question="", passage=""))
    return len(empty.passage) + len(empty.question)
