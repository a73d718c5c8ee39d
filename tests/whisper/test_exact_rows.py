"""On the real models a row's bits depend on the tokens before it and on nothing else."""

import hashlib
import random
import resource
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from as2d_cli.decoding import (
    EMPTY,
    Aligner,
    Controller,
    DraftState,
    DraftStream,
    FixedBudget,
    Retokenizer,
    decode,
    write_draft,
)
from as2d_cli.domain.errors import ModelError
from as2d_cli.domain.types import Request
from as2d_whisper.model import WhisperModel

MAX_ROWS = 24


def digest(row):
    return hashlib.blake2b(np.ascontiguousarray(row).tobytes(), digest_size=16).digest()


def digests(model, audio, cache, tokens):
    """Run `tokens`; return a digest of each row's logits and alignment."""
    rows = model.decode(audio, cache, tokens)
    return [
        digest(logits) + digest(weights) for logits, weights in zip(rows.logits, rows.alignment, strict=True)
    ]


@dataclass
class Run:
    """An encoded clip, tokens that fill the context, and what their rows are when run one at a time."""

    model: WhisperModel
    audio: list
    tokens: list
    alone: list

    def cache_of(self, length):
        """Return a cache that holds the first `length` tokens."""
        cache = self.model.new_cache()
        if length:
            self.model.decode(self.audio, cache, self.tokens[:length])
        return cache


def run_alone(model, features, length, skipped=range(0)):
    """Run `length` tokens one at a time, all but `skipped` ones, which only fill the cache."""
    audio = model.encode(features("jfk.flac", model.features))
    draw = random.Random(4)
    text = model.tokenizer.encode(" And so, my fellow Americans, ask not what your country can do for you.")
    start = model.tokenizer.special("<|startoftranscript|>")
    tokens = [start, *text, *(draw.randrange(model.facts.vocab_size) for _ in range(length))][:length]
    cache = model.new_cache()
    alone = []
    while len(alone) < length:
        rows = len(skipped) if len(alone) in skipped else 1
        found = digests(model, audio, cache, tokens[len(alone) : len(alone) + rows])
        alone += found if rows == 1 else [None] * rows
    return Run(model, audio, tokens, alone)


@pytest.fixture(scope="module", params=["mnn", "openvino"])
def tiny_en_on(request, folder_of):
    """Folder of tiny.en on each backend."""
    return folder_of("whisper-tiny.en", backend=request.param)


@pytest.fixture(scope="module", params=["tiny.en on mnn", "tiny.en on openvino", "base on openvino"])
def run(request, folder_of, features):
    name, _, backend = request.param.split()
    model = WhisperModel(folder_of(f"whisper-{name}", backend=backend), 1, exact_rows=True)
    skipped = range(150, 380) if name == "base" else range(0)  # takes long otherwise
    return run_alone(model, features, model.facts.n_text_positions, skipped)


def check_rounds(run, start, draw):
    """Accept a random part of rows that have a random tail, until all is done that was run alone."""
    cache, length = run.cache_of(start), len(run.tokens)
    if None in run.alone[start:]:
        length = run.alone.index(None)
    seen = set()
    while cache.length < length:
        at, rows = cache.length, min(draw.randint(1, MAX_ROWS), length - cache.length)
        kept = draw.randint(1, rows)
        tail = [draw.randrange(run.model.facts.vocab_size) for _ in range(rows - kept)]
        result = digests(run.model, run.audio, cache, [*run.tokens[at : at + kept], *tail])
        assert result[:kept] == run.alone[at : at + kept], f"{rows} rows after {at} tokens"
        cache.truncate(at + kept)
        seen.add(rows)
    return seen


def test_rows_in_random_rounds_have_the_bits_of_rows_run_alone(run):
    assert len(check_rounds(run, 0, random.Random(0))) > MAX_ROWS // 2


@pytest.mark.parametrize("start", [0, 29, 100, None])
def test_every_row_count_gives_the_bits_of_rows_run_alone(run, start):
    """At the beginning, where the keys grow by a step, in the middle, and up to the last token."""
    for rows in range(1, MAX_ROWS + 1):
        at = len(run.tokens) - rows if start is None else start
        result = digests(run.model, run.audio, run.cache_of(at), run.tokens[at : at + rows])
        assert result == run.alone[at : at + rows], f"{rows} rows"


def test_rounds_at_the_end_of_the_context_are_exact(run):
    for seed in range(3):
        check_rounds(run, len(run.tokens) - 40, random.Random(seed))


def test_a_pass_beyond_the_context_is_refused_and_changes_nothing(run):
    cache = run.cache_of(len(run.tokens) - 1)
    with pytest.raises(ModelError, match="449 tokens in a context of 448"):
        run.model.decode(run.audio, cache, run.tokens[-2:])
    assert digests(run.model, run.audio, cache, run.tokens[-1:]) == run.alone[-1:]


def test_two_threads_do_not_change_the_exactness_of_rows(tiny_en_on, features):
    """Work is shared out differently among threads; rows must agree among themselves there too."""
    run = run_alone(WhisperModel(tiny_en_on, threads=2, exact_rows=True), features, 120)
    for seed in range(2):
        check_rounds(run, 0, random.Random(seed))


@pytest.mark.parametrize("decode_threads", [1, 2])
def test_threads_of_the_decoder_do_not_change_a_bit(tiny_en_on, features, decode_threads):
    plain = run_alone(WhisperModel(tiny_en_on, 2, exact_rows=True), features, 60)
    split = WhisperModel(tiny_en_on, 2, exact_rows=True, decode_threads=decode_threads)
    assert run_alone(split, features, 60).alone == plain.alone


def test_on_openvino_no_threads_change_a_bit(folder_of, features):
    folder = folder_of("whisper-base", backend="openvino")
    one, two, three = (
        run_alone(WhisperModel(folder, threads, exact_rows=True), features, 40) for threads in (1, 2, 3)
    )
    assert one.alone == two.alone == three.alone


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's own account of memory")
def test_the_graphs_of_different_row_counts_share_the_weights(tiny_en_on, features):
    def resident_mb():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6

    model = WhisperModel(tiny_en_on, threads=1, exact_rows=True)
    audio, cache = model.encode(features("jfk.flac", model.features)), model.new_cache()
    model.decode(audio, cache, [1])
    before = resident_mb()
    for rows in range(2, 9):
        cache.truncate(0)
        model.decode(audio, cache, [1] * rows)
    assert resident_mb() - before < 80  # 7 copies of the weights are 220 MB


def test_a_cache_cannot_be_rolled_back_to_what_it_does_not_hold(run):
    cache = run.cache_of(3)
    for length in (-1, 4):
        with pytest.raises(ModelError, match="rollback"):
            cache.truncate(length)
    cache.truncate(3)
    assert cache.length == 3


def greedy(session, end_id):
    """Decode one row at a time, the plainest way there is."""
    tokens = [session.prompt[-1]]
    while tokens[-1] != end_id and len(tokens) <= session.max_tokens:
        tokens.append(int(session.forward(tokens[-1:])[0]))
    return tokens[1:]


def check_session(session, text, draw):
    """Feed the known `text` in random rounds with random tails; every decision must be the text's own."""
    tokens, at, attention = [session.prompt[-1], *text], 0, session.length
    while at < len(text):
        kept = draw.randint(1, min(MAX_ROWS, len(text) - at))
        tail = [draw.randrange(50000) for _ in range(draw.randint(0, MAX_ROWS - kept))]
        decided = session.forward([*tokens[at : at + kept], *tail])
        assert decided[:kept].tolist() == text[at : at + kept]
        at += kept
        session.rollback(attention + at)


@pytest.mark.parametrize(
    ("model", "name", "prompt"),
    [
        ("tiny_en", "jfk.flac", None),
        ("tiny_en", "jfk.flac", "MY FELLOW CITIZENS OF THE WORLD:"),
        ("base", "fleurs-de-004.ogg", None),  # detection caches the start token before the prompt is known
    ],
)
def test_a_session_decides_the_same_in_any_rounds(request, features, model, name, prompt):
    target = request.getfixturevalue(model)
    window, asked = features(name, target.spec.features), Request(word_times=True, prompt=prompt)
    alone = target.open(window, asked)
    text = greedy(alone, target.spec.end_id)
    assert alone.language == ("en" if model == "tiny_en" else "de")
    assert len(text) > 20
    words = alone.words(text[:-1], 10.0)
    for seed in range(2):
        session = target.open(window, asked)
        check_session(session, text, random.Random(seed))
        assert session.words(text[:-1], 10.0) == words


def test_detecting_the_language_leaves_the_cache_as_asking_for_it_does(base, features):
    window = features("fleurs-de-004.ogg", base.spec.features)
    asked, detected = (base.open(window, Request(language=language)) for language in ("de", None))
    assert asked.prompt == detected.prompt
    assert (asked.length, detected.length) == (3, 3)
    scores = [session.scores([session.prompt[-1], 50, 51]) for session in (asked, detected)]
    assert np.array_equal(*scores)


def test_two_sessions_of_one_model_do_not_leak_into_each_other(tiny_en, features):
    windows = [features(name, tiny_en.spec.features) for name in ("jfk.flac", "LJ001-0002.flac")]
    end = tiny_en.spec.end_id
    alone = [greedy(tiny_en.open(window, Request()), end) for window in windows]
    assert alone[0][:5] != alone[1][:5]
    sessions = [tiny_en.open(window, Request()) for window in windows]
    together = [[], []]
    while not all(text and text[-1] == end for text in together):
        for session, text in zip(sessions, together, strict=True):
            if not text or text[-1] != end:
                text.append(int(session.forward([text[-1] if text else session.prompt[-1]])[0]))
    assert together == alone


@pytest.fixture(scope="module", params=["jfk.flac", "LJ001-0008.flac", "fleurs-de-004.ogg", "printing.opus"])
def drafted(request, base, drafter, features):
    """A window, the whole draft of the real drafter in a stream, and the target's text without it."""
    asked = Request(language="de" if "-de-" in request.param else "en")
    window = features(request.param, base.spec.features)
    assert drafter.spec.features == base.spec.features
    stream = DraftStream.in_memory(448)
    stream.reset(1)
    retokenizer = Retokenizer(drafter.tokenizer, base.tokenizer, base.spec.vocab_size)
    draft = drafter.draft(window, Request(language="en"))
    state = write_draft(stream.writer(1), draft, retokenizer, end_id=base.spec.end_id)
    assert state is not DraftState.FAILED
    steps = list(decode(base.open(window, asked), EMPTY, Aligner(), FixedBudget(0), end_id=base.spec.end_id))
    return window, asked, stream, [token for step in steps for token in step.tokens]


@pytest.mark.parametrize("policy", [FixedBudget(7), FixedBudget(15), Controller()], ids=["7", "15", "auto"])
def test_the_real_draft_changes_no_token_of_the_target(drafted, base, policy):
    window, asked, stream, text = drafted
    reader = stream.reader(1, base.spec.vocab_size)
    session = base.open(window, asked)
    steps = list(decode(session, reader, Aligner(), policy, end_id=base.spec.end_id))
    assert [token for step in steps for token in step.tokens] == text
    assert asked.language != "en" or len(steps) < len(text)  # and the draft was not ignored


def test_scores_are_what_decisions_come_from_and_the_same_in_one_pass_as_one_by_one(base, features):
    session = base.open(features("jfk.flac", base.spec.features), Request(language="en"))
    start = session.length
    together = session.scores([session.prompt[-1], 50, 51, 52])
    session.rollback(start)
    alone = [session.scores([token])[0] for token in (session.prompt[-1], 50, 51, 52)]
    assert np.array_equal(together, alone)
    session.rollback(start + 1)
    decided = session.forward([50, 51, 52])
    assert [int(token) for token in decided] == together[1:, : base.spec.end_id].argmax(axis=1).tolist()
