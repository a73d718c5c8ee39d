"""Reads folders of clips with references: audio files beside a manifest.jsonl (file, text, lang, gold)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jiwer
from whisper_normalizer.basic import BasicTextNormalizer
from whisper_normalizer.english import EnglishTextNormalizer

STRICT_GOLD = {"dataset", "dataset-prompt", "public-domain text", "verified"}
_BY_CHARACTER = {"zh", "ja", "th"}
_NORMALISERS = {
    "en": EnglishTextNormalizer(),
    "spaced": BasicTextNormalizer(),
    "unspaced": BasicTextNormalizer(split_letters=True),
}


@dataclass(frozen=True)
class Clip:
    path: Path
    text: str
    language: str
    gold: str

    @property
    def strict(self) -> bool:
        return self.gold in STRICT_GOLD

    def normalised(self, text: str) -> str:
        """Whisper's normaliser; scripts without spaces are scored by character."""
        unspaced = "unspaced" if self.language in _BY_CHARACTER else "spaced"
        kind = "en" if self.language == "en" else unspaced
        return str(_NORMALISERS[kind](text)).strip()


def read_clips(folders: Sequence[Path]) -> Iterator[Clip]:
    for folder in folders:
        for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
            item = json.loads(line)
            yield Clip(folder / item["file"], item["text"], item["lang"], item.get("gold", ""))


def word_error_rate(pairs: Sequence[tuple[Clip, str]]) -> float:
    """Pooled: all errors over all reference words."""
    references = [clip.normalised(clip.text) for clip, _ in pairs]
    hypotheses = [clip.normalised(text) for clip, text in pairs]
    return float(jiwer.wer(references, hypotheses))
