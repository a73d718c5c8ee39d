"""Rank the tokens of English Whisper models by how often English needs them.

    pip install msgpack; pip download --no-deps wordfreq==3.1.1; unzip wordfreq-3.1.1-py3-none-any.whl
    python tools/measure/english_tokens.py wordfreq/data/large_en.msgpack.gz TOKENIZER.json > LIST

Counts the tokens of every word as often as wordfreq (Robyn Speer; data under CC BY-SA 4.0) has found the
word in books, subtitles, news, encyclopedias and the web. It lists words in lower case and without digits:
of each, a share is counted as it stands at the beginning of a sentence, or as a name; numbers and
punctuation are added.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgpack

from as2d_whisper.tokenizer import WhisperTokenizer

_CAPITAL = 0.2
"""Share of a word's uses that begin with a capital: sentences have ten to twenty words, names one."""
_BARE = 0.01
"""Share of a word's uses without a space before: after a hyphen, a quotation mark or an apostrophe."""
_EXTRA = {
    **{f"{space}{number}": 1e-4 for number in range(101) for space in ("", " ")},
    **{f" {year}": 1e-5 for year in range(1800, 2040)},
    **dict.fromkeys((".", ",", "?", "!", "-", "'", '"', ":", ";", "...", "%", "000"), 1e-3),
    **dict.fromkeys(
        (' "', '."', ',"', '?"', '!"', ".'", ",'", " -", " $", " '", " &", " (", ")", ".)"), 1e-4
    ),
}
_LISTED = 30_000


def main() -> None:
    words, tokenizer_file = map(Path, sys.argv[1:])
    tokenizer = WhisperTokenizer(tokenizer_file)
    counts: Counter[int] = Counter()
    for word, frequency in _words(words):
        for text, share in _forms(word):
            for token in tokenizer.encode(text):
                counts[token] += frequency * share
    for text, frequency in _EXTRA.items():
        for token in tokenizer.encode(text):
            counts[token] += frequency
    names = {token: name for name, token in json.loads(tokenizer_file.read_text())["model"]["vocab"].items()}
    sys.stdout.writelines(f"{names[token]}\n" for token, _ in counts.most_common(_LISTED))


def _words(path: Path) -> Iterator[tuple[str, float]]:
    """Yield words with their frequency: list i of the file has those of 10 ** (-i / 100)."""
    header, *lists = msgpack.unpackb(gzip.decompress(path.read_bytes()))
    if header["format"] != "cB":
        raise SystemExit(f"{path}: not a list of wordfreq's")
    for hundredths, words in enumerate(lists):
        for word in words:
            if not any(char.isdigit() for char in word):
                yield word, 10 ** (-hundredths / 100)


def _forms(word: str) -> Iterator[tuple[str, float]]:
    if word.split("'")[0] == "i":
        word = word.capitalize()
    yield f" {word}", 1 - _CAPITAL - _BARE
    yield f" {word.capitalize()}", _CAPITAL
    yield word, _BARE


if __name__ == "__main__":
    main()
