"""Word error rates, where the true texts are known and the packages for it are installed.

jiwer counts errors; the normaliser is Whisper's, the English one for English and the basic one for all
other languages, as in the published tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from as2d_cli.bench.trials import Trial
from as2d_cli.transcripts.segments import join_texts

MISSING = "no word error rates: they need the packages jiwer and whisper-normalizer"
NORMALISERS = (
    "words compared after whisper-normalizer (English rules for en, basic rules otherwise), by jiwer"
)


@dataclass(frozen=True, slots=True)
class WordErrors:
    """Errors of the files with a known text, pooled."""

    rate: float
    files: int


def word_errors(
    trials: Sequence[Trial], references: Mapping[str, tuple[str, str | None]]
) -> WordErrors | None:
    """Return the pooled error rate of one mode's first repeat; None if nothing can be compared.

    Raises `ImportError` if a package is missing.
    """
    jiwer: Any = import_module("jiwer")
    normalise = _normalisers()
    texts: dict[str, list[str]] = {}
    for trial in sorted((trial for trial in trials if trial.repeat == 0), key=lambda trial: trial.window):
        texts.setdefault(trial.file, []).append(trial.text)
    pairs = [
        (normalise(text, language), normalise(join_texts(texts[name]), language))
        for name, (text, language) in references.items()
        if name in texts
    ]
    pairs = [(reference, found) for reference, found in pairs if reference]
    if not pairs:
        return None
    references_, found_ = zip(*pairs, strict=True)
    return WordErrors(float(jiwer.wer(list(references_), list(found_))), len(pairs))


def _normalisers() -> Callable[[str, str | None], str]:
    english: Any = import_module("whisper_normalizer.english").EnglishTextNormalizer()
    basic: Any = import_module("whisper_normalizer.basic").BasicTextNormalizer()
    return lambda text, language: str((english if language == "en" else basic)(text)).strip()
