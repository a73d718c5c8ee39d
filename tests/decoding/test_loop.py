import random

import numpy as np
import pytest

from as2d_cli.decoding import (
    EMPTY,
    Aligner,
    Controller,
    DraftState,
    DraftStream,
    FixedBudget,
    StepCosts,
    decode,
    finished_draft,
)
from as2d_cli.decoding.virtual import PacedReader, VirtualClock
from as2d_cli.domain.errors import DecodeError
from as2d_cli.testing import ScriptedSession

END, VOCAB, PROMPT = 0, 1000, (900, 901, 902)
TEXT = [*range(1, 60), END]


class Run:
    """One decoded window: its session, its steps and its tokens; checks the cache after every step."""

    def __init__(
        self, script, reader, policy=None, *, mode="hybrid", max_tokens=200, clock=None, row_ms=None
    ):
        clock = clock or VirtualClock()
        cost = (lambda rows: clock.advance(row_ms(rows) / 1e3)) if row_ms else (lambda rows: None)
        self.session = ScriptedSession(
            script, prompt=PROMPT, vocab_size=VOCAB, max_tokens=max_tokens, cost=cost
        )
        self.steps, self.tokens = [], []
        policy = policy or FixedBudget(7)
        for step in decode(self.session, reader, Aligner(mode), policy, end_id=END, clock=clock):
            self.steps.append(step)
            self.tokens += step.tokens
            assert self.session.cached == (*PROMPT, *self.tokens[:-1])


def ready(ids, final=DraftState.ENDED):
    return finished_draft(ids, VOCAB, final)


def sparse_text(length, seed=0):
    """Text in which frequent tokens come back, as in speech."""
    draw = random.Random(seed)
    return [*draw.choices(range(1, 200), [1 / rank for rank in range(1, 200)], k=length), END]


def test_an_empty_draft_is_plain_decoding_one_token_per_pass():
    run = Run(TEXT, EMPTY)
    assert run.tokens == TEXT
    assert run.session.passes == len(TEXT)
    assert {(step.proposed, step.accepted, step.available) for step in run.steps} == {(0, 0, 0)}


@pytest.mark.parametrize("candidates", [1, 2, 3, 7, 15])
def test_a_perfect_draft_commits_one_more_than_it_proposes_in_every_pass(candidates):
    """Draft identical; the very first pass verifies already."""
    text = [*range(1, 15 * 16), END]
    run = Run(text, ready(text), FixedBudget(candidates), max_tokens=300)
    assert run.tokens == text
    assert [len(step.tokens) for step in run.steps[:-1]] == [candidates + 1] * (len(run.steps) - 1)


def test_a_silent_drafter_costs_no_extra_passes():
    stream = DraftStream.in_memory(10)
    stream.reset(1)
    stream.writer(1)
    run = Run(TEXT, stream.reader(1, VOCAB))
    assert (run.tokens, run.session.passes) == (TEXT, len(TEXT))


@pytest.mark.parametrize("mode", ["hybrid", "edit", "ngram", "none"])
def test_a_disjoint_draft_costs_no_extra_passes(mode):
    run = Run(TEXT, ready([token + 500 for token in TEXT[:-1]]), mode=mode)
    assert (run.tokens, run.session.passes) == (TEXT, len(TEXT))


def test_the_first_candidate_is_compared_with_the_decision_after_the_pending_token():
    """The first draft token is not committed unverified."""
    run = Run(TEXT, ready([77, *TEXT[1:]]), FixedBudget(1))
    assert run.steps[0].tokens == (1,)
    assert (run.steps[0].proposed, run.steps[0].accepted) == (1, 0)


def test_after_every_step_the_cache_holds_all_but_the_pending_token():
    """For random patterns of acceptance; `Run` checks every step."""
    draw = random.Random(7)
    for _ in range(50):
        text = sparse_text(80, draw.random())
        draft = [token if draw.random() < 0.8 else draw.randrange(1, 200) for token in text[:-1]]
        assert Run(text, ready(draft), FixedBudget(draw.randrange(9))).tokens == text


def test_an_end_inside_the_accepted_block_ends_the_text():
    """Tokens after the target's end must not be committed."""
    run = Run(TEXT, ready([*TEXT, 5, 6, 7]), FixedBudget(62))
    assert (run.tokens, run.session.passes) == (TEXT, 1)
    assert run.steps[0].accepted == len(TEXT)


def test_the_drafters_end_confirms_the_targets_end_in_the_same_pass():
    assert Run(TEXT, ready(TEXT), FixedBudget(60)).session.passes == 1


def test_a_drafter_that_ends_early_is_corrected_and_the_text_goes_on():
    run = Run(TEXT, ready([*TEXT[:20], END]))
    assert run.tokens == TEXT
    assert sum(step.accepted for step in run.steps) >= 17


def test_a_draft_that_never_ends_does_not_keep_the_target_from_ending():
    run = Run(TEXT, ready([*TEXT[:-1], *range(300, 400)], DraftState.CAPPED))
    assert run.tokens == TEXT


@pytest.mark.parametrize("limit", [1, 2, 5, 8, 9, 59, 60, 61])
def test_the_token_limit_cuts_inside_a_block_exactly_where_plain_decoding_stops(limit):
    """The scripted cache raises if a row does not fit."""
    drafted = Run(TEXT, ready(TEXT), FixedBudget(7), max_tokens=limit)
    plain = Run(TEXT, EMPTY, max_tokens=limit)
    assert drafted.tokens == plain.tokens == TEXT[:limit]


def test_no_tokens_allowed_means_no_pass():
    assert Run(TEXT, ready(TEXT), max_tokens=0).session.passes == 0


def test_a_hallucinated_intro_is_passed_over():
    run = Run(TEXT, ready([*range(500, 515), *TEXT]))
    assert (run.tokens, len(run.steps) < 25) == (TEXT, True)


def test_an_omitted_section_is_bridged():
    run = Run(TEXT, ready(TEXT[:15] + TEXT[30:]))
    assert (run.tokens, len(run.steps) < 30) == (TEXT, True)


def test_a_looping_drafter_costs_little():
    run = Run(TEXT, ready(TEXT[:15] + TEXT[10:15] * 5 + TEXT[15:]))
    assert (run.tokens, len(run.steps) < 25) == (TEXT, True)


def test_a_loop_of_the_target_itself_is_reproduced():
    text = [1, 2, 3] * 60
    assert Run(text, ready([1, 2, 3] * 20), max_tokens=150).tokens == text[:150]


def test_a_preamble_that_only_the_target_says_does_not_spoil_the_draft():
    run = Run([700, 701, 702, *TEXT], ready(TEXT))
    assert (run.tokens, len(run.steps) < 16) == ([700, 701, 702, *TEXT], True)


def test_after_a_used_up_draft_the_target_goes_on_alone():
    run = Run(TEXT, ready(TEXT[:20], DraftState.FAILED))
    assert run.tokens == TEXT
    assert [len(step.tokens) for step in run.steps] == [8, 8, 5] + [1] * 39


def test_a_target_that_decides_only_its_last_row_is_reported():

    class LastRowOnly(ScriptedSession):
        def forward(self, tokens):
            return super().forward(tokens)[-1:]

    session = LastRowOnly(TEXT, prompt=PROMPT, vocab_size=VOCAB, max_tokens=99)
    with pytest.raises(DecodeError, match="1 of 8 rows"):
        list(decode(session, ready(TEXT), Aligner(), FixedBudget(7), end_id=END))


def test_a_target_without_a_prompt_is_reported():
    session = ScriptedSession(TEXT, prompt=(), vocab_size=VOCAB, max_tokens=99)
    with pytest.raises(DecodeError, match="prompt"):
        next(decode(session, EMPTY, Aligner(), FixedBudget(7), end_id=END))


def test_decisions_depend_on_the_prefix_of_their_row_whatever_runs_beside_them():
    """A wrong candidate in front must not leak into later steps."""
    run = Run(TEXT, ready([1, 77, 3, 4, 77, 6, 77, 77, 9, 10, 11]), FixedBudget(5))
    assert run.tokens == TEXT


def paced(text, start_s, token_s, clock, final=DraftState.ENDED):
    stream = DraftStream.in_memory(len(text), clock)
    stream.reset(1)
    schedule = [(start_s + token_s * index, token) for index, token in enumerate(text)]
    return PacedReader(stream, 1, VOCAB, schedule, final)


LONG = [*range(1, 150), END]


def run_against_drafter(start_s, token_s, text=LONG):
    clock = VirtualClock()
    reader = paced(text, start_s, token_s, clock)
    return Run(text, reader, clock=clock, row_ms=lambda rows: 10), reader


def test_a_drafter_that_stays_behind_is_cancelled_after_24_tokens():
    """It only takes cpu time away."""
    run, reader = run_against_drafter(start_s=0.05, token_s=0.02)
    assert (run.tokens, reader.state) == (LONG, DraftState.CANCELLED)
    assert 10 <= reader.snapshot() <= 15


def test_a_drafter_that_has_not_begun_after_24_tokens_is_cancelled():
    run, reader = run_against_drafter(start_s=0.5, token_s=0.001)
    assert (run.session.passes, reader.state) == (len(LONG), DraftState.CANCELLED)


def test_a_drafter_that_is_catching_up_is_left_alone():
    run, reader = run_against_drafter(start_s=0.2, token_s=0.004)
    assert (run.tokens, reader.state) == (LONG, DraftState.ENDED)
    assert len(run.steps) < 110


def test_the_target_never_waits_for_the_drafter():
    clock = VirtualClock()
    Run(TEXT, paced(TEXT, 1.0, 0.01, clock), clock=clock, row_ms=lambda rows: 10)
    assert clock() == pytest.approx(len(TEXT) * 0.010)


def test_the_policy_learns_costs_and_hazards_from_the_steps():
    clock = VirtualClock()
    policy = Controller(StepCosts({1: 5.0}))
    Run(TEXT, ready(TEXT), policy, clock=clock, row_ms=lambda rows: 5 + rows)
    assert max(policy.costs.table(False)) > 4
    assert policy.hazard.rates[6] > 0.95


def test_the_policy_learns_even_while_it_proposes_nothing():
    """Otherwise a bad start would switch speculation off for good."""
    policy = Controller(cap=0)
    Run(TEXT, ready(TEXT), policy)
    assert sum(policy.hazard.to_counts()[:7]) == pytest.approx(sum(policy.hazard.to_counts()[7:]))
    assert policy.hazard.rates[6] > 0.96


def test_steps_carry_the_time_of_the_pass_by_the_given_clock():
    clock = VirtualClock()
    run = Run(TEXT, ready(TEXT), FixedBudget(3), clock=clock, row_ms=lambda rows: 4 + rows)
    assert run.steps[0].ms == pytest.approx(8)
    assert np.sum([step.ms for step in run.steps]) == pytest.approx(clock() * 1e3)


def test_a_draft_that_is_never_right_is_cancelled_after_24_of_its_tokens():
    clock = VirtualClock()
    wrong = [499 - token for token in LONG[:-1]]
    reader = paced(wrong, 0.0, 0.001, clock)
    run = Run(LONG, reader, FixedBudget(3), mode="none", clock=clock, row_ms=lambda rows: 1)
    assert (run.tokens, reader.state) == (LONG, DraftState.CANCELLED)
    assert 20 <= reader.snapshot() <= 40


def test_a_poor_draft_is_not_a_useless_one():
    clock = VirtualClock()
    poor = [token if at % 4 else 499 - token for at, token in enumerate(LONG)]
    reader = paced(poor, 0.0, 0.002, clock)
    run = Run(LONG, reader, clock=clock, row_ms=lambda rows: 10)
    assert (run.tokens, reader.state) == (LONG, DraftState.ENDED)


@pytest.mark.parametrize(
    "answer", [None, [5], np.array([np.nan], np.float32), np.array([[5]])], ids=["none", "list", "nan", "2d"]
)
def test_a_target_that_decides_no_token_ids_is_an_error(answer):
    class Confused(ScriptedSession):
        def forward(self, tokens):
            return answer

    session = Confused(TEXT, prompt=PROMPT, vocab_size=VOCAB, max_tokens=200)
    with pytest.raises(DecodeError, match="no token ids"):
        next(decode(session, EMPTY, Aligner(), FixedBudget(0), end_id=END))


@pytest.mark.parametrize("told", [[0.5], [float("nan")], [float("-inf")], [-1.0, -1.0]])
def test_log_probabilities_that_are_none_fail_the_window(told):
    session = ScriptedSession(TEXT, prompt=PROMPT, vocab_size=VOCAB, max_tokens=9)
    session.logprobs = lambda rows: np.array(told, np.float32)
    with pytest.raises(DecodeError, match="log-probabilities that are none"):
        next(decode(session, EMPTY, Aligner(), FixedBudget(0), end_id=END))


def test_a_target_that_tells_no_log_probabilities_is_decoded_without():
    class Silent:
        def __init__(self, session):
            self.prompt, self.length, self.max_tokens = session.prompt, session.length, session.max_tokens
            self.forward, self.rollback = session.forward, session.rollback

    session = Silent(ScriptedSession(TEXT, prompt=PROMPT, vocab_size=VOCAB, max_tokens=200))
    steps = list(decode(session, EMPTY, Aligner(), FixedBudget(0), end_id=END))
    assert [token for step in steps for token in step.tokens] == TEXT
    assert {step.logprobs for step in steps} == {()}
