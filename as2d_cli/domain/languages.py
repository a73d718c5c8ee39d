"""The languages of Whisper: codes, English names, and what people type for them."""

from __future__ import annotations

import re
from difflib import get_close_matches

from as2d_cli.domain.errors import RequestError

AUTO = "auto"
EACH_WINDOW = "each"
AUTO_SURE = 0.9
"""Probability from which a window of a file counts as being in another language than the file's first."""
EACH_SURE = 0.5
"""The same where each window's language is asked for."""

LANGUAGES: dict[str, str] = dict(
    line.split(" ", 1)
    for line in """\
en english
zh chinese
de german
es spanish
ru russian
ko korean
fr french
ja japanese
pt portuguese
tr turkish
pl polish
ca catalan
nl dutch
ar arabic
sv swedish
it italian
id indonesian
hi hindi
fi finnish
vi vietnamese
he hebrew
uk ukrainian
el greek
ms malay
cs czech
ro romanian
da danish
hu hungarian
ta tamil
no norwegian
th thai
ur urdu
hr croatian
bg bulgarian
lt lithuanian
la latin
mi maori
ml malayalam
cy welsh
sk slovak
te telugu
fa persian
lv latvian
bn bengali
sr serbian
az azerbaijani
sl slovenian
kn kannada
et estonian
mk macedonian
br breton
eu basque
is icelandic
hy armenian
ne nepali
mn mongolian
bs bosnian
kk kazakh
sq albanian
sw swahili
gl galician
mr marathi
pa punjabi
si sinhala
km khmer
sn shona
yo yoruba
so somali
af afrikaans
oc occitan
ka georgian
be belarusian
tg tajik
sd sindhi
gu gujarati
am amharic
yi yiddish
lo lao
uz uzbek
fo faroese
ht haitian creole
ps pashto
tk turkmen
nn nynorsk
mt maltese
sa sanskrit
lb luxembourgish
my myanmar
bo tibetan
tl tagalog
mg malagasy
as assamese
tt tatar
haw hawaiian
ln lingala
ha hausa
ba bashkir
jw javanese
su sundanese
yue cantonese
""".splitlines()
)
"""Code -> English name; the codes are Whisper's own (`jw`, not `jv`)."""

_OTHER_NAMES = {
    "burmese": "my",
    "castilian": "es",
    "cn": "zh",
    "cz": "cs",
    "dk": "da",
    "farsi": "fa",
    "filipino": "tl",
    "flemish": "nl",
    "gr": "el",
    "haitian": "ht",
    "jp": "ja",
    "letzeburgesch": "lb",
    "mandarin": "zh",
    "moldavian": "ro",
    "moldovan": "ro",
    "panjabi": "pa",
    "pushto": "ps",
    "sinhalese": "si",
    "ua": "uk",
    "valencian": "ca",
    "vn": "vi",
}
"""Also codes of countries that are no code of a language, and whose one main language is meant."""
_STANDARD_CODES = {"fil": "tl", "jv": "jw", "nb": "no"}
"""Standard code -> Whisper's."""
_NO_LANGUAGE = {None, "mis", "mul", "zxx"}
"""Codes that stand for none, several or no known language."""
_LONGEST_CODE = 3
_COUNTRY = re.compile("[a-z]{2}")
_LOCALE_ENDING = re.compile(r"[.@].*", re.DOTALL)
_FARTHEST = 30
"""Languages this far apart on CLDR's scale, 4 for dialects, are not offered for one another."""


def language_of_window(of_file: str | None, heard: str, probability: float, sure: float | None) -> str:
    """Return the language of a window by that of its file, None in the first, and what is heard in it.

    It depends on no other window, so windows may be decoded in any order. A foreign name makes a model less
    sure, but not sure of another language (decision 18).

    >>> language_of_window(None, "de", 0.4, 0.9), language_of_window("en", "de", 0.4, 0.9)
    ('de', 'en')
    >>> language_of_window("en", "de", 0.95, 0.9), language_of_window("en", "de", 0.95, None)
    ('de', 'en')
    """
    is_heard = of_file is None or (sure is not None and probability >= sure)
    return heard if is_heard or of_file is None else of_file


def language_code(text: str) -> str | None:
    """Return the code of the language `text` names, None for `auto`; case does not matter.

    A name may be a code, an English name, a BCP 47 tag, an ISO 639-2 or 639-3 code, or a POSIX locale.
    Raises `RequestError` with the nearest names.

    >>> language_code("German"), language_code("DE"), language_code("auto")
    ('de', 'de', None)
    >>> language_code("pt-BR"), language_code("en_US.UTF-8"), language_code("deu")
    ('pt', 'en', 'de')
    """
    word = " ".join(text.lower().replace("_", " ").split())
    if word == AUTO:
        return None
    codes = {name: code for code, name in LANGUAGES.items()} | _OTHER_NAMES
    if (code := word if word in LANGUAGES else codes.get(word)) is not None:
        return code
    tag = _LOCALE_ENDING.sub("", word).replace(" ", "-")
    if (code := _code_of_tag(tag)) is not None:
        return code
    typos = get_close_matches(word, codes, n=3) if len(word) > _LONGEST_CODE else ()
    near = [f"{name} ({codes[name]})" for name in typos]
    near = near or [f"{LANGUAGES[code]} ({code})" for code in _nearest(tag)]
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        hint = "give a code like en, an English name like german, or auto"
    raise RequestError(f"there is no language {text!r} among those of the models", hint)


def _code_of_tag(tag: str) -> str | None:
    """Return the code of the language that a BCP 47 tag is about, None if Whisper lacks it."""
    from langcodes import Language, tag_is_valid  # here: the command line starts without it

    if not tag_is_valid(tag):
        return None
    languages = [Language.get(broader).language or "" for broader in Language.get(tag).broader_tags()]
    return next((code for code in map(_whispers, languages) if code in LANGUAGES), None)


def _nearest(tag: str) -> list[str]:
    """Return the code of what may be meant by a tag that is about no language of Whisper's, if there is one.

    That is the language nearest to it, or else the main one of the country with this code. English is not
    offered for a country: that is what countries without a language on record have.
    """
    from langcodes import Language, closest_match, tag_is_valid

    if tag_is_valid(tag) and Language.get(tag).language not in _NO_LANGUAGE:
        code, distance = closest_match(tag, list(LANGUAGES), max_distance=_FARTHEST)
        if distance < _FARTHEST:
            return [code]
    of_country = f"und-{tag}"
    if not _COUNTRY.fullmatch(tag) or not tag_is_valid(of_country):
        return []
    code = _whispers(Language.get(of_country).maximize().language or "")
    return [code] if code in LANGUAGES and code != "en" else []


def _whispers(language: str) -> str:
    return _STANDARD_CODES.get(language, language)
