"""What Whisper may not write, row by row."""

from types import SimpleNamespace

import numpy as np
import pytest

from as2d_cli.domain.types import Request
from as2d_whisper.rules import Rules

END, VOCAB = 10, 16


def rules(suppress=(3, 4, 12), begin=(2, END)):
    facts = SimpleNamespace(suppress=suppress, suppress_begin=begin)
    return Rules(SimpleNamespace(tokenizer=SimpleNamespace(end_id=END), facts=facts))


def row(**scores):
    """Logits of a row: `t7=5` gives token 7 the logit 5, all others have -1."""
    logits = np.full(VOCAB, -1, np.float32)
    for name, value in scores.items():
        logits[int(name[1:])] = value
    return logits


def choose(*rows, first_row=None, using=None):
    return (using or rules()).choose(np.array(rows), first_row).tolist()


def test_the_highest_allowed_token_of_each_row_is_chosen():
    assert choose(row(t7=5, t8=4), row(t3=9, t8=4), row(t4=9, t3=8, t0=0), row(t10=9)) == [7, 8, 0, END]


def test_tokens_above_the_end_are_never_chosen():
    assert choose(row(t11=9, t15=8, t10=1)) == [END]


@pytest.mark.parametrize("first_row", [0, 1, 2])
def test_what_no_text_begins_with_is_barred_only_in_the_row_that_decides_the_first_token(first_row):
    chosen = choose(*[row(t2=9, t10=8, t5=1)] * 3, first_row=first_row)
    assert chosen == [5 if index == first_row else 2 for index in range(3)]


def test_a_text_may_not_be_empty_but_may_end_later():
    assert choose(row(t10=9, t6=1), row(t10=9, t6=1), first_row=0) == [6, END]


def test_the_general_rule_holds_in_the_first_row_too():
    assert choose(row(t3=9, t2=8, t7=1), first_row=0) == [7]


def test_a_tie_goes_to_the_lowest_id():
    assert choose(row(t5=2, t7=2), row(t7=2, t3=2, t8=2), row()) == [5, 7, 0]


def test_the_list_of_all_rows_cannot_bar_the_end():
    """Then no text would ever end; special tokens, which lists name, are barred anyway."""
    assert choose(row(t10=9), using=rules(suppress=(END, 12, 15))) == [END]


def test_numbers_that_are_no_ids_are_ignored():
    """-1 stands for "the usual ones" in some files; as an index it would be the end token."""
    assert choose(row(t10=9), row(t10=9), first_row=0, using=rules((-1, 99), (-1, 99))) == [END, END]


def test_the_choice_of_a_row_does_not_depend_on_the_rows_beside_it():
    random = np.random.default_rng(0)
    logits = random.standard_normal((24, VOCAB)).astype(np.float32)
    together = rules().choose(logits.copy(), 3).tolist()
    alone = [choose(logits[index], first_row=0 if index == 3 else None)[0] for index in range(24)]
    assert together == alone


def test_the_first_row_of_a_session_is_the_one_after_the_prompt(base, features):
    """The end token may not come first; the rule of the first row must not reach the rows after it."""
    window = features("LJ001-0008.flac", base.spec.features)
    calls = []
    session = base.open(window, Request(language="en"))
    choose_rows = session._rules.choose
    session._rules = SimpleNamespace(
        choose=lambda logits, first: calls.append(first) or choose_rows(logits, first)
    )
    start = session.length
    session.forward([session.prompt[-1], 5, 6])
    session.forward([7])
    session.rollback(start + 2)
    session.forward([5, 6])
    session.rollback(start)
    session.forward([session.prompt[-1]])
    assert calls == [0, None, None, 0]
