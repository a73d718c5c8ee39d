"""Languages as people type them."""

import pytest

from as2d_cli.domain.errors import RequestError
from as2d_cli.domain.languages import AUTO_SURE, LANGUAGES, language_code, language_of_window
from as2d_cli.domain.types import Request


def test_whisper_has_a_hundred_languages():
    assert len(LANGUAGES) == 100
    assert LANGUAGES["haw"] == "hawaiian"
    assert LANGUAGES["ht"] == "haitian creole"


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("de", "de"),
        ("DE", "de"),
        ("German", "de"),
        ("haitian_creole", "ht"),
        ("Mandarin", "zh"),
        ("yue", "yue"),
    ],
)
def test_codes_and_english_names_are_understood_in_any_case(typed, code):
    assert language_code(typed) == code


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("pt-BR", "pt"),
        ("en_US.UTF-8", "en"),
        ("sr_RS@latin", "sr"),
        ("zh-TW", "zh"),
        ("zh-Hant-HK", "zh"),
        ("zh-yue", "yue"),
        ("cmn", "zh"),
        ("deu", "de"),
        ("ger", "de"),
        ("arb", "ar"),
        ("iw", "he"),
        ("nb", "no"),
        ("nob", "no"),
        ("nn-NO", "nn"),
        ("jav", "jw"),
        ("fil-PH", "tl"),
        ("jp", "ja"),
        ("UA", "uk"),
    ],
)
def test_tags_locales_and_longer_codes_of_one_language_are_understood(typed, code):
    assert language_code(typed) == code


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("gsw", "did you mean german (de)?"),
        ("ary-MA", "did you mean arabic (ar)?"),
        ("kr", "did you mean korean (ko)?"),  # Kanuri, and Korea
        ("tw", "did you mean chinese (zh)?"),  # Twi, and Taiwan
        ("ky", "a code like en"),
        ("mul", "auto"),
        ("C.UTF-8", "auto"),
    ],
)
def test_a_code_of_no_language_of_whisper_is_refused_with_the_nearest(typed, hint):
    with pytest.raises(RequestError) as caught:
        language_code(typed)
    assert hint in caught.value.hint


def test_auto_means_that_the_language_is_detected():
    assert language_code("Auto") is None


@pytest.mark.parametrize(
    ("typed", "hint"),
    [("germn", "german (de)"), ("frensh", "french (fr)"), ("xx", "a code like en"), ("", "auto")],
)
def test_a_typo_gets_a_suggestion(typed, hint):
    with pytest.raises(RequestError) as caught:
        language_code(typed)
    assert hint in caught.value.hint


def test_every_code_of_the_default_target_is_known():
    # Of multilingual Whisper's tokenizer, in its order; the newest models add Cantonese.
    codes = (
        "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th "
        "ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr "
        "pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt "
        "haw ln ha ba jw su yue "
    )
    assert list(LANGUAGES) == codes.split()


def test_a_window_is_in_its_files_language_unless_another_is_surely_heard():
    assert language_of_window("en", "fr", AUTO_SURE, AUTO_SURE) == "fr"
    assert language_of_window("en", "fr", AUTO_SURE - 0.01, AUTO_SURE) == "en"
    assert language_of_window("en", "fr", 1.0, None) == "en"
    assert language_of_window(None, "fr", 0.1, None) == "fr"


def test_a_translation_that_one_window_does_not_need_is_asked_for_again_in_another_language():
    asked = Request("translate")
    assert asked.in_language("en").task == "transcribe"
    assert asked.in_language("en").in_language("de") == asked.in_language("de")
    assert asked.in_language("de").task == "translate"
