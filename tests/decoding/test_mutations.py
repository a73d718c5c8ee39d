"""Proof that the equality tests can fail: one-character faults in the loop change the text."""

import inspect
import itertools

import pytest

from as2d_cli.decoding import EMPTY, Aligner, FixedBudget, finished_draft
from as2d_cli.decoding import loop as loop_module
from as2d_cli.decoding import verify as verify_module
from as2d_cli.domain.errors import DecodeError
from as2d_cli.testing import ScriptedSession

END, VOCAB = 0, 500
TEXT = [*range(1, 40), END]
NOISY = [token + 300 if token % 6 == 5 else token for token in TEXT]

MUTATIONS = [
    ("loop", "decided[: accepted + 1]", "decided[: accepted + 2]"),
    ("loop", "decided[: accepted + 1]", "decided[: accepted + 0]"),
    ("loop", "kept += len(tokens)", "kept -= len(tokens)"),
    ("loop", "session.prompt[-1]", "session.prompt[-2]"),
    ("loop", "pending = tokens[-1]", "pending = tokens[-0]"),
    ("loop", "min(len(ahead), left - 1)", "min(len(ahead), left + 1)"),
    ("loop", "while left > 0", "while left > 1"),
    ("loop", "if pending == end_id", "if pending != end_id"),
    ("verify", "decided[index] != candidate", "decided[index] == candidate"),
    ("verify", "kept.index(end_id) + 1", "kept.index(end_id) + 2"),
    ("verify", "kept.index(end_id) + 1", "kept.index(end_id) - 1"),
]


def load(source):
    """Run the text of a module in a namespace of its own and return that."""
    namespace = {"__name__": "as2d_mutated"}
    exec(compile(source, "<mutated>", "exec"), namespace)
    return namespace


def decoder(loop_source, verify_source):
    verify, loop = load(verify_source), load(loop_source)
    loop.update(count_accepted=verify["count_accepted"], cut=verify["cut"])
    return loop["decode"]


def keeps_its_promise(decode):
    """Whether drafted and plain decoding give the script, in cases that each fault should spoil."""
    for draft in (None, TEXT, NOISY, [*TEXT, 5, 6], [9, 9, 9]):
        for limit, budget in itertools.product((100, 20, 17, 1), (4, 6)):
            session = ScriptedSession(TEXT, prompt=(401, 402), vocab_size=VOCAB, max_tokens=limit)
            reader = EMPTY if draft is None else finished_draft(draft, VOCAB)
            committed = []
            try:
                for step in decode(session, reader, Aligner(), FixedBudget(budget), end_id=END):
                    committed += step.tokens
                    if session.cached[2:] != tuple(committed[:-1]):
                        return False
            except (DecodeError, IndexError):
                return False
            if committed != TEXT[:limit]:
                return False
    return True


def sources():
    return {"loop": inspect.getsource(loop_module), "verify": inspect.getsource(verify_module)}


def test_the_loop_as_it_is_passes():
    texts = sources()
    assert keeps_its_promise(decoder(texts["loop"], texts["verify"]))


@pytest.mark.parametrize(("module", "right", "wrong"), MUTATIONS, ids=[wrong for _, _, wrong in MUTATIONS])
def test_a_fault_of_one_character_is_caught(module, right, wrong):
    texts = sources()
    assert texts[module].count(right) == 1
    assert sum(a != b for a, b in zip(right, wrong, strict=True)) == 1
    texts[module] = texts[module].replace(right, wrong)
    assert not keeps_its_promise(decoder(texts["loop"], texts["verify"]))
