import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from as2d_cli.bench.baselines.async_coupled import Channel, FollowedDraft, Follower
from as2d_cli.bench.baselines.coupled import Coupling
from as2d_cli.bench.baselines.serial import (
    SERIAL_MODES,
    WHOLE_DRAFT,
    AdaptiveSchedule,
    FixedSchedule,
    SerialDraft,
    new_schedule,
    serial_draft,
)
from as2d_cli.decoding import END, DraftState, DraftStream, DraftToken, decode
from as2d_cli.decoding.virtual import VirtualClock
from as2d_cli.domain.errors import DecodeError
from as2d_cli.domain.types import Request
from as2d_cli.testing import ScriptedSession
from as2d_scripted import Script, ScriptedDrafter, ScriptedTarget, ScriptedTokenizer

STOP, VOCAB, PROMPT = 0, 200, (190, 191)
TEXT = [*range(1, 61), STOP]


class Letters:
    """A tokenizer whose ids are their own text, for ids that mean nothing."""

    fingerprint = "letters"

    def encode(self, text):
        return [ord(letter) for letter in text]

    def decode_bytes(self, ids):
        return "".join(chr(token) for token in ids if token < VOCAB - 10).encode()


class Locked:
    """A drafter session that says `own[n]` after any n tokens, with `sure[n]` probability."""

    prompt = (7, 8)

    def __init__(self, own, sure=None, max_tokens=500):
        self.own, self.sure, self.max_tokens = own, sure or {}, max_tokens
        self.cache, self.fed = list(self.prompt[:-1]), []

    @property
    def length(self):
        return len(self.cache)

    def forward(self, tokens):
        assert tokens, "a pass without rows"
        self.fed.append(list(tokens))
        self.cache += tokens
        at = len(self.cache) - len(self.prompt)
        return DraftToken(self.own[at] if at < len(self.own) else END, self.sure.get(at, 1.0))

    def rollback(self, length):
        assert 0 < length <= len(self.cache)
        del self.cache[length:]


def coupling(session):
    return Coupling(session, Letters(), Letters(), VOCAB)


def session_of(text, max_tokens=300, cost=lambda rows: None):
    return ScriptedSession(text, prompt=PROMPT, vocab_size=VOCAB, max_tokens=max_tokens, cost=cost)


def run(draft, text=TEXT, max_tokens=300):
    return list(decode(session_of(text, max_tokens), draft, draft, WHOLE_DRAFT, end_id=STOP))


def text_of(steps):
    return [token for step in steps for token in step.tokens]


def with_errors(*places):
    return [99 if index in places else token for index, token in enumerate(TEXT[:-1])]


def fixed(session, gamma, **options):
    return SerialDraft(coupling(session), FixedSchedule(gamma), end_id=STOP, **options)


# -- coupling ----------------------------------------------------------------------------------------


def test_a_coupled_drafter_goes_on_after_the_text_it_is_synced_with():
    session = Locked([11, 12, 13, 14, 15])
    drafter = coupling(session)
    assert [drafter.step().id for _ in range(3)] == [11, 12, 13]
    drafter.sync([11, 50])
    assert drafter.step().id == 13
    assert session.cache == [7, 8, 11, 50]
    assert session.fed == [[8], [11], [12], [50]]


def test_syncing_with_what_the_drafter_wrote_costs_nothing_and_forgets_nothing():
    drafter = coupling(Locked([11, 12, 13, 14, 15], {1: 0.5}))
    first = [drafter.step() for _ in range(3)]
    drafter.sync([11])
    assert [drafter.step() for _ in range(2)] == first[1:]
    assert drafter.passes == 3
    assert (drafter.step().id, drafter.passes) == (14, 4)


def test_missing_tokens_are_fed_in_one_pass():
    session = Locked([11, 12, 13, 14, 15])
    drafter = coupling(session)
    drafter.sync([21, 22, 23, 24])
    assert (drafter.step().id, session.fed) == (15, [[8, 21, 22, 23, 24]])


def test_a_drafter_that_ended_goes_on_when_the_target_does():
    drafter = coupling(Locked([11, 12]))
    assert [drafter.step().id for _ in range(3)] == [11, 12, END]
    assert drafter.step() is None
    drafter.sync([11, 12, 13])
    assert drafter.step().id == END


def test_a_full_context_ends_the_draft_without_an_end():
    drafter = coupling(Locked(list(range(11, 50)), max_tokens=4))
    assert [drafter.step().id for _ in range(4)] == [11, 12, 13, 14]
    assert drafter.step() is None
    drafter.sync([1, 2, 3, 4, 5])
    assert drafter.step() is None


WORDS, BYTES = ScriptedTokenizer(), ScriptedTokenizer(words=False)


def test_between_vocabularies_a_word_is_given_out_when_it_is_whole():
    session = Locked(BYTES.encode(" now and then"), {2: 0.6, 6: 0.7})
    drafter = Coupling(session, BYTES, WORDS, WORDS.size)
    now, so = WORDS.encode(" now and")
    assert drafter.step() == DraftToken(now, 0.6)
    assert drafter.step() == DraftToken(so, 0.7)
    passes = drafter.passes
    drafter.sync([now])
    assert drafter.step() == DraftToken(so, 0.7)
    assert drafter.passes == passes


def test_between_vocabularies_the_targets_text_is_encoded_for_the_drafter():
    session = Locked(BYTES.encode(" now and then"))
    drafter = Coupling(session, BYTES, WORDS, WORDS.size)
    drafter.sync(WORDS.encode(" how and"))
    assert drafter.step().id == WORDS.encode(" then")[0]
    assert session.cache[2:10] == BYTES.encode(" how and")


def test_a_character_written_in_part_does_not_stop_the_drafter():
    session = Locked(BYTES.encode("Zürich"))
    drafter = Coupling(session, BYTES, WORDS, WORDS.size)
    drafter.sync(WORDS.encode("Zü")[:2])
    drafter.step()
    assert session.cache[2] == ord("Z")


def test_text_without_a_word_border_is_not_held_for_ever():
    drafter = Coupling(Locked([ord("a")] * 300), BYTES, WORDS, WORDS.size)
    assert drafter.step().id == ord("a")
    assert drafter.passes <= 16


# -- serial modes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [2, 4, 8])
def test_a_right_drafter_gives_gamma_tokens_and_one_more_in_every_step(gamma):
    session = Locked(TEXT[:-1])
    draft = fixed(session, gamma)
    steps = run(draft)
    assert text_of(steps) == TEXT
    assert len(steps) == -(-len(TEXT) // (gamma + 1))
    assert {step.proposed for step in steps[:-1]} == {gamma}


def test_after_a_correction_the_drafter_goes_on_from_the_targets_text():
    session = Locked(with_errors(5, 6))
    steps = run(fixed(session, 4))
    assert text_of(steps) == TEXT
    assert [len(step.tokens) for step in steps[:4]] == [5, 1, 1, 5]
    assert session.cache[2:] == TEXT[: len(session.cache) - 2]


def test_every_drafted_token_costs_a_pass_and_no_other_does():
    session = Locked(with_errors(5, 20))
    draft = fixed(session, 4)
    steps = run(draft)
    assert len(session.fed) == draft.drafted == sum(step.available for step in steps)


def test_while_the_target_works_the_drafter_counts_as_idle():
    seen = []

    class Watching(type(WHOLE_DRAFT)):
        def timed(self, rows, ms, drafting):
            seen.append(drafting)

    draft = fixed(Locked(TEXT[:-1]), 4)
    list(decode(session_of(TEXT), draft, draft, Watching(9), end_id=STOP))
    assert set(seen) == {False}


def test_the_drafters_own_end_is_proposed_as_the_targets():
    steps = run(fixed(Locked(TEXT[:-1]), 100))
    assert [step.tokens for step in steps] == [tuple(TEXT)]
    assert steps[0].accepted == len(TEXT)


def test_the_time_of_the_drafter_is_measured_apart_from_the_targets():
    clock = VirtualClock()
    session = Locked(TEXT[:-1])
    forward = session.forward
    session.forward = lambda tokens: clock.advance(0.002) or forward(tokens)
    draft = fixed(session, 4, clock=clock)
    target = session_of(TEXT, cost=lambda rows: clock.advance(0.010))
    steps = list(decode(target, draft, draft, WHOLE_DRAFT, end_id=STOP, clock=clock))
    assert draft.ms == pytest.approx(2 * len(session.fed))
    assert clock() * 1e3 == pytest.approx(draft.ms + 10 * len(steps))


def test_a_cancelled_serial_draft_writes_no_more():
    session = Locked(TEXT[:-1])
    draft = fixed(session, 4)
    draft.cancel()
    assert (draft.snapshot(), session.fed) == (0, [])
    draft.observe([1])
    assert (draft.snapshot(), session.fed) == (1, [])


def test_the_adaptive_schedule_grows_by_two_and_shrinks_by_one():
    schedule = AdaptiveSchedule(3)
    lengths = []
    for drafted, accepted in [(3, 3), (5, 5), (7, 6), (6, 0), (5, 5), (0, 0)]:
        schedule.learn(drafted, accepted)
        lengths.append(schedule.tokens)
    assert lengths == [5, 7, 6, 5, 7, 7]
    for _ in range(9):
        schedule.learn(schedule.tokens, 0)
    assert schedule.tokens == 1


def test_the_adaptive_schedule_drives_the_draft():
    draft = SerialDraft(coupling(Locked(with_errors(30))), AdaptiveSchedule(2), end_id=STOP)
    steps = run(draft)
    assert [step.proposed for step in steps[:5]] == [2, 4, 6, 8, 10]
    assert steps[5].proposed == 9
    assert text_of(steps) == TEXT


def test_a_draft_ends_with_the_first_token_in_doubt():
    sure = {4: 0.39, 10: 0.41}
    draft = SerialDraft(coupling(Locked(TEXT[:-1], sure)), FixedSchedule(24, 0.4), end_id=STOP)
    steps = run(draft)
    assert [step.proposed for step in steps] == [5, 24, 24, 5]
    assert text_of(steps) == TEXT


def asp(session, **options):
    return serial_draft("specasr-asp", coupling(session), end_id=STOP, **options)


def test_recycling_takes_the_rest_of_a_rejected_draft_without_drafter_passes():
    plain, recycling = Locked(with_errors(5)), Locked(with_errors(5))
    without = run(SerialDraft(coupling(plain), FixedSchedule(24, 0.4), end_id=STOP))
    draft = asp(recycling)
    steps = run(draft)
    assert [step.tokens for step in steps] == [step.tokens for step in without]
    # 18 of the first 24 tokens follow the wrong one: the first is written again, 17 are taken over.
    assert draft.recycled == 17
    assert len(plain.fed) - len(recycling.fed) == 17


@pytest.mark.parametrize("shift", [-1, 1])
def test_recycling_finds_a_tail_that_is_one_off(shift):
    """The drafter's first hearing has a word too few, or too many; after the correction it is in step."""
    wrong = TEXT[:5] + TEXT[6:] if shift < 0 else [*TEXT[:5], 99, *TEXT[5:]]

    class SecondHearing(Locked):
        def rollback(self, length):
            super().rollback(length)
            self.own = TEXT[:-1]

    draft = asp(SecondHearing(wrong[:-1]))
    assert text_of(run(draft)) == TEXT
    assert draft.recycled >= 16


def test_a_recycled_token_in_doubt_still_ends_the_draft():
    session = Locked(with_errors(5), {12: 0.1})
    draft = asp(session)
    steps = run(draft)
    assert [step.proposed for step in steps[:2]] == [13, 7]
    assert draft.recycled == 6
    assert text_of(steps) == TEXT


def test_recycled_tokens_that_are_wrong_are_rejected_and_their_tail_recycled_again():
    session = Locked(with_errors(5, 12))
    draft = asp(session)
    steps = run(draft)
    assert text_of(steps) == TEXT
    assert [len(step.tokens) for step in steps[:2]] == [6, 7]
    assert draft.recycled > 17


def test_after_recycling_the_drafter_goes_on_with_what_was_recycled_in_its_cache():
    session = Locked(with_errors(2))
    draft = serial_draft("specasr-asp", coupling(session), end_id=STOP, schedule=FixedSchedule(10, 0.4))
    run(draft)
    batches = [rows for rows in session.fed if len(rows) > 1]
    assert TEXT[3:10] in batches


def test_a_drafter_that_has_run_out_of_room_drafts_as_far_as_it_comes():
    steps = run(fixed(Locked(TEXT[:-1], max_tokens=5), 4))
    assert [step.proposed for step in steps[:4]] == [4, 0, 0, 0]
    assert text_of(steps) == TEXT


def test_an_unknown_serial_mode_is_an_error_that_lists_the_known_ones():
    with pytest.raises(DecodeError, match="sd-3") as caught:
        new_schedule("sd-3")
    assert "sd-2" in caught.value.hint


# -- asynchronous, coupled ---------------------------------------------------------------------------


def channel(clock=None, end_id=STOP, vocab_size=VOCAB):
    options = {} if clock is None else {"clock": clock}
    streams = [DraftStream.in_memory(300, **options) for _ in range(2)]
    return Channel(*streams, end_id, vocab_size)


def test_a_follower_starts_again_after_the_corrected_text():
    shared = channel()
    target = FollowedDraft(shared, 5)
    follower = Follower(shared, coupling(Locked(with_errors(2))))
    assert all(follower.turn() for _ in range(6))
    assert target.ids(0, target.snapshot()) == [1, 2, 99, 4, 5, 6]
    target.observe([1, 2, 3])
    assert (target.epoch, target.snapshot(), target.cursor) == (6, 3, 3)
    follower.turn()
    assert target.ids(0, target.snapshot()) == [1, 2, 3, 4]


def test_as_long_as_the_target_agrees_nothing_starts_again():
    shared = channel()
    target = FollowedDraft(shared, 5)
    follower = Follower(shared, coupling(Locked(TEXT[:-1])))
    for committed in ([1], [2, 3], [4]):
        for _ in range(3):
            follower.turn()
        target.snapshot()
        target.observe(committed)
    assert (target.epoch, target.cursor, target.run) == (5, 4, 4)


def test_a_follower_that_was_overtaken_goes_on_from_where_the_target_is():
    shared = channel()
    target = FollowedDraft(shared, 1)
    session = Locked(TEXT[:-1])
    follower = Follower(shared, coupling(session))
    follower.turn()
    target.snapshot()
    target.observe([1, 2, 3, 4])
    follower.turn()
    assert target.ids(0, target.snapshot()) == [1, 2, 3, 4, 5]
    assert session.fed == [[8], [1, 2, 3, 4]]


def test_what_was_drafted_before_a_restart_is_not_published_after_it():
    shared = channel()
    target = FollowedDraft(shared, 1)
    follower = Follower(shared, coupling(Locked(with_errors(0))))
    assert follower.work()
    target.observe([1, 2])
    follower.publish()
    assert (target.snapshot(), target.seen) == (2, 2)


def test_a_follower_that_ended_waits_until_the_text_goes_another_way():
    shared = channel()
    target = FollowedDraft(shared, 1)
    follower = Follower(shared, coupling(Locked([1, 2])))
    assert [follower.turn() for _ in range(4)] == [True, True, True, False]
    assert (target.snapshot(), target.complete) == (3, True)
    target.observe([1, 2, 3])
    assert (target.snapshot(), target.complete, follower.turn()) == (3, False, True)
    assert not follower.over


def test_a_follower_that_has_run_out_of_room_says_so():
    shared = channel()
    target = FollowedDraft(shared, 1)
    follower = Follower(shared, coupling(Locked(TEXT[:-1], max_tokens=2)))
    assert [follower.turn() for _ in range(4)] == [True, True, False, False]
    assert (target.snapshot(), target.complete) == (2, True)
    assert shared.drafts.reader(1, VOCAB).state is DraftState.CAPPED


def test_a_cancelled_window_is_over_for_the_follower_and_stays_so():
    shared = channel()
    target = FollowedDraft(shared, 1)
    follower = Follower(shared, coupling(Locked(TEXT[:-1])))
    follower.turn()
    target.snapshot()
    target.cancel()
    assert (follower.turn(), follower.over) == (False, True)
    assert target.ids(0, target.snapshot()) == [1]
    target.observe([7])
    assert (target.epoch, target.cursor, follower.over) == (1, None, True)


class PacedFollowing(FollowedDraft):
    """A followed draft whose follower runs by the streams' virtual clock, `pass_s` seconds per pass."""

    def __init__(self, channel, epoch, drafter, *, pass_s):
        super().__init__(channel, epoch)
        self._follower = Follower(channel, drafter)
        self._drafter, self._clock, self._pass_s = drafter, channel.drafts.clock, pass_s
        self._free_s, self._due_s = 0.0, None

    def snapshot(self):
        """Let the follower work up to now, then count."""
        self._catch_up()
        return super().snapshot()

    def _catch_up(self):
        now = self._clock()
        while self._free_s <= now:
            if self._due_s is None:
                before = self._drafter.passes
                if not self._follower.work():
                    self._free_s = now
                    return
                self._due_s = self._free_s + (self._drafter.passes - before) * self._pass_s
            if self._due_s > now:
                return
            self._follower.publish()
            self._free_s, self._due_s = self._due_s, None


TICK_S = 2**-9  # sums of it are exact


def follow(session, pass_ticks, target_ticks):
    clock = VirtualClock()
    draft = PacedFollowing(channel(clock), 1, coupling(session), pass_s=pass_ticks * TICK_S)
    target = session_of(TEXT, cost=lambda rows: clock.advance(target_ticks * TICK_S))
    steps = list(decode(target, draft, draft, WHOLE_DRAFT, end_id=STOP, clock=clock))
    assert text_of(steps) == TEXT
    assert clock() == len(steps) * target_ticks * TICK_S
    return steps, draft


def test_a_follower_five_times_as_fast_lets_every_pass_commit_five_tokens():
    steps, draft = follow(Locked(TEXT[:-1]), 1, 5)
    assert [len(step.tokens) for step in steps] == [1, *[5] * 12]
    assert draft.epoch == 1


def test_a_follower_restarts_once_for_every_correction():
    steps, draft = follow(Locked(with_errors(20, 40)), 1, 10)
    assert draft.epoch == 1 + 2
    assert [len(step.tokens) for step in steps][:4] == [1, 10, 10, 1]


def test_a_follower_slower_than_the_target_is_cancelled_and_costs_no_pass():
    steps, draft = follow(Locked(TEXT[:-1]), 25, 10)
    assert len(steps) == len(TEXT)
    assert draft.complete


@pytest.mark.parametrize("seed", range(3))
def test_a_follower_in_a_thread_of_its_own_changes_no_text(seed):
    shared = channel()
    draft = FollowedDraft(shared, 1)
    follower = Follower(shared, coupling(Locked(with_errors(5, 6, 20 + seed, 40))))

    def drafting():
        while not follower.over:
            follower.turn()
            time.sleep(0.0001)

    thread = threading.Thread(target=drafting)
    thread.start()
    target = session_of(TEXT, cost=lambda rows: time.sleep(0.002))
    steps = list(decode(target, draft, draft, WHOLE_DRAFT, end_id=STOP))
    draft.cancel()
    thread.join(20)
    assert not thread.is_alive()
    assert text_of(steps) == TEXT
    assert len(steps) < len(TEXT)


# -- the promise -------------------------------------------------------------------------------------

tokens = st.integers(0, 11)


@settings(max_examples=300)
@given(st.data())
def test_no_coupled_mode_changes_the_text(data):
    script = data.draw(st.lists(tokens, max_size=50), label="script")
    noise = data.draw(st.lists(st.none() | tokens, max_size=60), label="noise")
    own = [
        new if new is not None else (script[at] if at < len(script) else 3) for at, new in enumerate(noise)
    ]
    sure = dict(enumerate(data.draw(st.lists(st.floats(0, 1), max_size=60), label="probabilities")))
    limit = data.draw(st.integers(1, 51), label="max_tokens")
    room = data.draw(st.integers(1, 60), label="drafter's room")
    text = [*script, STOP]
    plain = text[: min(text.index(STOP) + 1, limit)]
    session = Locked(own, sure, max_tokens=room)
    mode = data.draw(st.sampled_from([*SERIAL_MODES, "followed"]), label="mode")
    clock = VirtualClock()
    if mode == "followed":
        pass_s = data.draw(st.floats(0, 0.03), label="pass_s")
        draft = PacedFollowing(channel(clock), 3, coupling(session), pass_s=pass_s)
    else:
        draft = serial_draft(mode, coupling(session), end_id=STOP, clock=clock)
    target = session_of(text, limit, cost=lambda rows: clock.advance(0.01))
    steps = list(decode(target, draft, draft, WHOLE_DRAFT, end_id=STOP, clock=clock))
    assert text_of(steps) == plain
    assert len(steps) <= len(plain)


@pytest.mark.parametrize("drafter_words", [True, False])
@pytest.mark.parametrize("target_words", [True, False])
@pytest.mark.parametrize("mode", [*SERIAL_MODES, "followed"])
def test_every_mode_gives_the_targets_text_in_fewer_steps_across_vocabularies(
    mode, target_words, drafter_words
):
    script = Script(words=80, seed=4)
    target = ScriptedTarget(script, max_tokens=900, tokenizer=ScriptedTokenizer(words=target_words))
    drafter = ScriptedDrafter(
        script, error_rate=0.1, noise_seed=2, tokenizer=ScriptedTokenizer(words=drafter_words)
    )
    spec, features = target.spec, np.zeros((1, 1), np.float32)
    session = target.open(features, Request())
    said = "".join(f" {word}" for word in script.read(features, Request()))
    wanted = [*target.tokenizer.encode(said), spec.end_id]
    coupled = Coupling(
        drafter.open(features, Request()), drafter.tokenizer, target.tokenizer, spec.vocab_size
    )
    clock = VirtualClock()
    if mode == "followed":
        streams = [DraftStream.in_memory(900, clock) for _ in range(2)]
        draft = PacedFollowing(Channel(*streams, spec.end_id, spec.vocab_size), 1, coupled, pass_s=0.0005)
        session._cost = lambda rows: clock.advance(0.01)
    else:
        draft = serial_draft(mode, coupled, end_id=spec.end_id, clock=clock)
    steps = list(decode(session, draft, draft, WHOLE_DRAFT, end_id=spec.end_id, clock=clock))
    assert text_of(steps) == wanted
    assert len(steps) < 0.6 * len(wanted)


def test_a_finished_follower_says_so_in_its_stream():
    shared = channel()
    FollowedDraft(shared, 1)
    follower = Follower(shared, coupling(Locked([1])))
    while follower.turn():
        pass
    assert shared.drafts.reader(1, VOCAB).state is DraftState.ENDED
