import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from as2d_cli.decoding import END
from as2d_cli.domain.errors import DecodeError, PluginError
from as2d_cli.domain.types import Request
from as2d_cli.testing import ScriptedSession
from as2d_scripted import Script, ScriptedDrafter, ScriptedTarget, ScriptedTokenizer, plugin

FEATURES = np.zeros((80, 30), np.float32)


def session(script=(5, 6, 7, 8, 0), **options):
    settings = {"prompt": (1, 2), "vocab_size": 50, "max_tokens": 20, **options}
    return ScriptedSession(script, **settings)


def entry(**options):
    return SimpleNamespace(name="toy", options=options)


def text_of(target, request=None, features=FEATURES):
    window = target.open(features, request or Request())
    token, tokens = window.prompt[-1], []
    while token != target.spec.end_id:
        token = int(window.forward([token])[-1])
        tokens.append(token)
    return target.tokenizer.decode_bytes(tokens).decode()


def test_many_rows_decide_what_one_by_one_decide():
    rows = [2, 5, 9, 7]
    single = session()
    assert session().forward(rows).tolist() == [int(single.forward([row])[0]) for row in rows]


def test_a_session_says_its_script_after_exactly_its_prefix():
    assert session().forward([2, 5, 6, 7, 8]).tolist() == [5, 6, 7, 8, 0]


@pytest.mark.parametrize("rows", [[1, 5, 6], [2, 2, 5, 6], [2, 6], [2, 5, 5, 6]])
def test_a_wrong_missing_or_doubled_token_derails_it(rows):
    decided = session().forward([*rows, 7])[-1]
    assert decided != 8


def test_after_a_rollback_it_goes_on_as_if_nothing_had_been():
    window = session()
    window.forward([2, 5, 9, 9, 9])
    window.rollback(3)
    assert (window.length, window.forward([6]).tolist()) == (3, [7])


def test_a_rollback_to_the_current_length_changes_nothing():
    window = session()
    window.forward([2, 5])
    window.rollback(3)
    assert (window.cached, window.forward([6]).tolist()) == ((1, 2, 5), [7])


@pytest.mark.parametrize("length", [0, 4, -1])
def test_a_rollback_into_the_prompt_or_the_future_is_refused(length):
    window = session()
    window.forward([2, 5])
    with pytest.raises(DecodeError, match="cannot go back"):
        window.rollback(length)


@pytest.mark.parametrize("rows", [[], [50], [-1], [2] * 21])
def test_rows_that_no_real_target_could_take_are_refused(rows):
    with pytest.raises(DecodeError, match="scripted"):
        session().forward(rows)


def test_words_need_their_tokens_in_the_cache():
    target = ScriptedTarget(Script(text="now and then"))
    window = target.open(FEATURES, Request())
    tokens = target.tokenizer.encode(" now and then")
    with pytest.raises(DecodeError, match="not in the scripted cache"):
        window.words(tokens, 3.0)
    window.forward([window.prompt[-1], *tokens])
    words = window.words(tokens, 3.0)
    assert [(word.text, word.start_s, word.end_s) for word in words] == [
        (" now", 0.0, 1.0),
        (" and", 1.0, 2.0),
        (" then", 2.0, 3.0),
    ]


def test_a_target_reads_its_text_and_ends():
    assert text_of(ScriptedTarget(Script(text="Hello, world"))) == " Hello, world"


def test_equal_features_give_equal_text_and_others_another():
    target = ScriptedTarget(Script(words=20))
    assert text_of(target) == text_of(target) != text_of(target, features=FEATURES + 1)
    assert len(text_of(target).split()) == 20


def test_the_request_shows_in_the_prompt_and_the_language():
    target = ScriptedTarget()
    plain, german = (target.open(FEATURES, Request(language=code)) for code in (None, "de"))
    translated = target.open(FEATURES, Request(task="translate"))
    assert (plain.language, german.language) == ("en", "de")
    assert len({plain.prompt, german.prompt, translated.prompt}) == 3


def test_an_unknown_language_is_an_error():
    with pytest.raises(DecodeError, match="xx"):
        ScriptedTarget().open(FEATURES, Request(language="xx"))


def test_a_target_fails_when_asked_to():
    with pytest.raises(DecodeError, match="as asked"):
        text_of(ScriptedTarget(fail_at=3))


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("text", [" now and then", "Zürich  now", "", " ", "a"])
def test_the_tokenizer_round_trips(words, text):
    tokenizer = ScriptedTokenizer(words=words)
    assert tokenizer.decode_bytes(tokenizer.encode(text)).decode() == text


def test_the_tokenizers_differ_and_know_it():
    words, letters = ScriptedTokenizer(), ScriptedTokenizer(words=False)
    assert words.fingerprint == ScriptedTokenizer().fingerprint != letters.fingerprint
    assert len(words.encode(" now")) == 1
    assert len(letters.encode(" now")) == 4
    assert words.decode_bytes([words.size, 10**6, -1]) == b""


WORDS = "one two three four five six seven eight"


def draft(**options):
    script = Script(text=WORDS)
    drafter = ScriptedDrafter(script=script, **options)
    tokens = itertools.islice(drafter.draft(FEATURES, Request()), 300)
    ids = [token.id for token in tokens]
    return drafter.tokenizer.decode_bytes(ids).decode().split(), ids[-1]


def test_a_drafter_without_errors_hears_the_script():
    assert draft() == (WORDS.split(), END)


def test_a_drafter_errs_as_often_as_told_and_always_alike():
    script = Script(words=4000)
    heard = [
        [
            token.id
            for token in ScriptedDrafter(script, error_rate=0.1, noise_seed=seed).draft(FEATURES, Request())
        ]
        for seed in (1, 1, 2)
    ]
    right = [token.id for token in ScriptedDrafter(script).draft(FEATURES, Request())]
    assert heard[0] == heard[1] != heard[2]
    assert 0.9 < len(heard[0]) / len(right) < 1.0


def test_a_drafter_can_leave_out_loop_and_fail():
    assert draft(omit_at=1, omit_words=6)[0] == ["one", "eight"]
    assert draft(loop_at=1)[0][:8] == ["one", *["two", "three", "four", "five", "six"], "two", "three"]
    assert draft(loop_at=1)[1] != END
    with pytest.raises(DecodeError, match="before token 3"):
        draft(fail_at=3)


def continued(session, ids, count):
    rows = [*session.prompt, *ids][session.length :]
    tokens = []
    for _ in range(count):
        tokens.append(session.forward(rows).id)
        rows = tokens[-1:]
    return tokens


@pytest.mark.parametrize("words", [True, False])
def test_a_session_of_a_drafter_drafts_what_the_drafter_drafts(words):
    tokenizer = ScriptedTokenizer(words=words)
    drafter = ScriptedDrafter(Script(words=60), error_rate=0.2, tokenizer=tokenizer)
    ids = [token.id for token in drafter.draft(FEATURES, Request())]
    assert continued(drafter.open(FEATURES, Request()), [], len(ids)) == ids


def test_told_the_right_word_a_drafter_hears_on_after_it():
    script = Script(text="one two three four five six")
    drafter = ScriptedDrafter(script, omit_at=1, omit_words=1)
    encode, session = drafter.tokenizer.encode, drafter.open(FEATURES, Request())
    heard = encode(" three four")
    assert continued(session, encode(" one"), len(heard)) == heard
    session.rollback(1 + len(encode(" one")))
    assert continued(session, encode(" one two"), len(heard)) == heard


def test_a_session_of_a_drafter_can_fail_and_refuses_what_no_cache_could_do():
    drafter = ScriptedDrafter(Script(text=WORDS), fail_at=1)
    session = drafter.open(FEATURES, Request())
    for wrong in ([], [5]):
        with pytest.raises(DecodeError, match="from nothing"):
            session.forward(wrong)
    session.forward(session.prompt)
    with pytest.raises(DecodeError, match="as asked"):
        session.forward([5])
    with pytest.raises(DecodeError, match="cannot go back"):
        session.rollback(2)
    with pytest.raises(DecodeError, match="overflow"):
        session.forward([5] * 5000)


def test_the_hooks_build_from_an_entrys_options():
    target = plugin.as2d_load_target(entry(text="hi there", max_tokens=19, tokenizer="bytes"))
    drafter = plugin.as2d_load_drafter(entry(text="hi there", error_rate=1, loop_at=2))
    assert (text_of(target), target.max_tokens, target.tokenizer.size) == (" hi there", 19, 256)
    assert (drafter.script.text, drafter.error_rate, drafter.loop_at) == ("hi there", 1, 2)
    assert plugin.as2d_load_tokenizer(entry(tokenizer="bytes")).size == 256


@pytest.mark.parametrize("options", [{"txt": "typo"}, {"max_tokens": "many"}, {"tokenizer": "runes"}])
def test_a_wrong_option_is_an_error_that_names_model_and_option(options):
    with pytest.raises(PluginError, match=r"'toy'.*'(txt|max_tokens|runes)'"):
        plugin.as2d_load_target(entry(**options))
