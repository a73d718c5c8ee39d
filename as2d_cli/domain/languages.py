"""The languages of Whisper: codes, English names, and what people type for them."""

from __future__ import annotations

from difflib import get_close_matches

from as2d_cli.domain.errors import RequestError

AUTO = "auto"

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
    "farsi": "fa",
    "filipino": "tl",
    "flemish": "nl",
    "haitian": "ht",
    "iw": "he",
    "jv": "jw",
    "letzeburgesch": "lb",
    "mandarin": "zh",
    "moldavian": "ro",
    "moldovan": "ro",
    "panjabi": "pa",
    "pushto": "ps",
    "sinhalese": "si",
    "valencian": "ca",
}


def language_code(text: str) -> str | None:
    """Return the code of the language `text` names, None for `auto`; case does not matter.

    Raises `RequestError` with the nearest names.

    >>> language_code("German"), language_code("DE"), language_code("auto")
    ('de', 'de', None)
    """
    word = " ".join(text.lower().replace("_", " ").split())
    if word == AUTO:
        return None
    if word in LANGUAGES:
        return word
    codes = {name: code for code, name in LANGUAGES.items()} | _OTHER_NAMES
    if word in codes:
        return codes[word]
    near = get_close_matches(word, codes, n=3)
    if near:
        hint = "did you mean " + " or ".join(f"{name} ({codes[name]})" for name in near) + "?"
    else:
        hint = "give a code like en, an English name like german, or auto"
    raise RequestError(f"there is no language {text!r}", hint)
