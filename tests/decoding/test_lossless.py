"""The one promise: whatever is drafted, whenever, the committed tokens are the target's own."""

import multiprocessing
import os
import random
import secrets
import threading
import time
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from as2d_cli.decoding import (
    EMPTY,
    Aligner,
    Controller,
    DraftState,
    DraftStream,
    FixedBudget,
    StepCosts,
    decode,
)
from as2d_cli.decoding.virtual import PacedReader, VirtualClock
from as2d_cli.domain.types import Request
from as2d_cli.testing import ScriptedSession
from as2d_cli.testing.process import draft_into
from as2d_scripted import Script, ScriptedDrafter, ScriptedTarget, ScriptedTokenizer

END, VOCAB, CAPACITY = 0, 12, 80
FINAL_STATES = [state for state in DraftState if state.finished]

ids = st.integers(0, VOCAB - 1)
any_int32 = st.integers(-(2**31), 2**31 - 1)


class HostilePolicy:
    """Chooses anything at all."""

    def __init__(self, choices):
        self._choices = iter(choices)

    def choose(self, available, run, drafting):
        return next(self._choices, 3)

    def learn(self, run, trials, right): ...

    def timed(self, rows, ms, drafting): ...


class HostileAligner(Aligner):
    """Points anywhere at all."""

    def __init__(self, cursors):
        super().__init__()
        self._cursors = iter(cursors)
        self._now = 0

    def observe(self, tokens):
        super().observe(tokens)
        self._now = next(self._cursors, None)

    @property
    def cursor(self):
        return self._now


class HauntedReader(PacedReader):
    """A reader in whose slot the writer of an earlier window goes on publishing."""

    haunts = ()

    def snapshot(self):
        if next(self.haunts, False):
            self.ghost.publish([5])
            self.ghost.finish(DraftState.ENDED)
        return super().snapshot()


@st.composite
def drafts(draw, script):
    """A draft: perfect, shifted, noisy, cut, looping, ended early or late, or garbage."""
    text = list(script)
    kind = draw(st.sampled_from(["perfect", "shifted", "noisy", "ended", "looping", "random", "garbage"]))
    at = draw(st.integers(0, len(text)))
    if kind == "shifted":
        return draw(st.lists(ids, max_size=5)) + text[at:]
    if kind == "noisy":
        return [draw(ids) if draw(st.integers(0, 4)) == 0 else token for token in text]
    if kind == "ended":
        return [*text[:at], END, *text[at:], END]
    if kind == "looping":
        return text[:at] + text[max(at - 4, 0) : at] * 6 + text[at:]
    if kind in {"random", "garbage"}:
        return draw(st.lists(any_int32 if kind == "garbage" else ids, max_size=60))
    return text


policies = (
    st.builds(FixedBudget, st.integers(0, 30))
    | st.builds(Controller, cap=st.integers(0, 30))
    | st.builds(HostilePolicy, st.lists(st.integers(-5, 10**6)))
)
aligners = st.builds(Aligner, st.sampled_from(["hybrid", "edit", "ngram", "none"])) | st.builds(
    HostileAligner, st.lists(st.none() | st.integers(-3, 90) | any_int32)
)


def plain(script, max_tokens):
    """Target-only decoding without any of the code under test: the script up to its end or the limit."""
    text = [*script, END]
    return text[: min(text.index(END) + 1, max_tokens)]


def plain_logprobs(session, committed):
    """Log-probabilities of tokens that are decided row by row, without the code under test."""
    told = []
    for token in [session.prompt[-1], *committed[:-1]]:
        session.forward([token])
        told += session.logprobs(1).tolist()
    return told


def scripted(script, max_tokens, cost=lambda rows: None):
    return ScriptedSession([*script, END], prompt=(3, 4), vocab_size=VOCAB, max_tokens=max_tokens, cost=cost)


@settings(max_examples=1000)
@given(st.data())
def test_any_draft_any_timing_any_budget_and_any_aligner_give_the_targets_own_tokens(data):
    """Wrong places, odd drafts, ends, late publishes, timing and limits in one property."""
    script = data.draw(st.lists(ids, max_size=60), label="script")
    max_tokens = data.draw(st.integers(1, 61), label="max_tokens")
    draft = data.draw(drafts(script), label="draft")[:CAPACITY]
    gaps = data.draw(st.lists(st.floats(0, 0.05), min_size=len(draft), max_size=len(draft)), label="gaps")
    clock = VirtualClock()
    stream = DraftStream.in_memory(CAPACITY, clock)
    stream.reset(1)
    ghost = stream.writer(1)
    ghost.publish(data.draw(st.lists(ids, max_size=9), label="tokens of another window"))
    stream.reset(2)
    schedule = list(zip(np.cumsum(gaps).tolist(), draft, strict=True))
    final = data.draw(st.sampled_from(FINAL_STATES), label="final state")
    reader = HauntedReader(stream, 2, VOCAB, schedule, final)
    reader.ghost = ghost
    reader.haunts = iter(data.draw(st.lists(st.booleans(), max_size=20), label="late publishes"))
    session = scripted(script, max_tokens, lambda rows: clock.advance(0.01 + 0.002 * rows))
    policy, aligner = data.draw(policies, label="policy"), data.draw(aligners, label="aligner")

    committed, logprobs = [], []
    for step in decode(session, reader, aligner, policy, end_id=END, clock=clock):
        committed += step.tokens
        logprobs += step.logprobs
        assert session.cached == (3, 4, *committed[:-1])

    assert committed == plain(script, max_tokens)
    assert logprobs == plain_logprobs(scripted(script, max_tokens), committed), (
        "confidence is the target's own"
    )
    assert session.passes <= len(committed), "no draft may cost an extra pass"


def test_twenty_runs_with_other_delays_take_other_steps_to_the_same_text():
    draw = random.Random(3)
    script = [draw.randrange(1, 200) for _ in range(120)]
    draft = [token if draw.random() < 0.9 else 7 for token in script]
    texts, step_counts = set(), set()
    for _ in range(20):
        clock = VirtualClock()
        stream = DraftStream.in_memory(120, clock)
        stream.reset(1)
        due = np.cumsum([draw.expovariate(1 / 0.006) for _ in draft]).tolist()
        reader = PacedReader(stream, 1, 200, list(zip(due, draft, strict=True)))
        session = ScriptedSession(
            [*script, END],
            prompt=(1,),
            vocab_size=200,
            max_tokens=200,
            cost=lambda rows, clock=clock: clock.advance(0.01),
        )
        steps = list(decode(session, reader, Aligner(), Controller(StepCosts()), end_id=END, clock=clock))
        texts.add(tuple(token for step in steps for token in step.tokens))
        step_counts.add(len(steps))
    assert texts == {(*script, END)}
    assert len(step_counts) > 3, "the delays should have made a difference"


FEATURES = np.zeros((2, 3), np.float32)
SCRIPT = Script(words=120, seed=5)


def open_target(**options):
    target = ScriptedTarget(script=SCRIPT, max_tokens=400, **options)
    return target, target.open(FEATURES, Request())


def text_of(session, reader, end_id):
    steps = list(decode(session, reader, Aligner(), FixedBudget(7), end_id=end_id))
    return [token for step in steps for token in step.tokens], steps


def target_only():
    target, session = open_target()
    return text_of(session, EMPTY, target.spec.end_id)[0]


@pytest.mark.parametrize("seed", range(4))
def test_a_writer_thread_racing_the_loop_does_not_change_the_text(seed):
    target, session = open_target(step_ms=0.2)
    wanted = target_only()
    stream = DraftStream.in_memory(400)
    stream.reset(1)
    draw = random.Random(seed)

    def draft():
        writer = stream.writer(1)
        for token in wanted:
            time.sleep(draw.choice([0, 0, 0.0001, 0.0005]))
            writer.publish([token if draw.random() < 0.9 else 1])
        writer.finish(DraftState.ENDED)

    thread = threading.Thread(target=draft)
    thread.start()
    tokens, steps = text_of(session, stream.reader(1, target.spec.vocab_size), target.spec.end_id)
    thread.join()
    assert tokens == wanted
    assert len(steps) <= len(wanted)


def decode_beside_process(drafter):
    """Decode while a spawned process drafts into shared memory; return text, steps and the reader's end."""
    target, session = open_target(step_ms=2)
    name = f"as2d-{os.getpid()}-{secrets.token_hex(4)}"  # a run removes it should this process be killed
    memory = SharedMemory(name, create=True, size=DraftStream.bytes_needed(400))
    stream = DraftStream(memory.buf, 400)
    stream.reset(7)
    process = multiprocessing.get_context("spawn").Process(
        target=draft_into, args=(memory.name, 400, 7, drafter, target, FEATURES)
    )
    process.start()
    try:
        reader = stream.reader(7, target.spec.vocab_size)
        deadline = time.monotonic() + 30
        while reader.snapshot() < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        tokens, steps = text_of(session, reader, target.spec.end_id)
        process.join(30)
        return tokens, steps, reader.state, process.exitcode
    finally:
        process.kill()
        process.join()
        stream.close()
        memory.close()
        memory.unlink()


def test_a_drafter_in_another_process_and_vocabulary_speeds_up_without_changing_the_text():
    drafter = ScriptedDrafter(
        script=SCRIPT, error_rate=0.08, delay_ms=0.2, tokenizer=ScriptedTokenizer(words=False)
    )
    tokens, steps, state, exit_code = decode_beside_process(drafter)
    assert tokens == target_only()
    assert len(steps) < 0.7 * len(tokens)
    assert (state, exit_code) == (DraftState.ENDED, 0)


def test_a_drafter_process_that_dies_costs_only_speed():
    """Child death; its stream never says that it is finished."""
    tokens, steps, state, exit_code = decode_beside_process(ScriptedDrafter(script=SCRIPT, exit_at=40))
    assert tokens == target_only()
    assert len(steps) < len(tokens)
    assert (state, exit_code) == (DraftState.DRAFTING, 70)
