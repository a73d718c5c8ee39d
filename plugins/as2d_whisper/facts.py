"""What is known of a converted model without loading it: written by `convert`, read by everybody else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from as2d_cli.plugin import ModelError, read_json


@dataclass(frozen=True)
class Facts:
    """Dimensions and decoding rules, and what the model was converted for."""

    backend: str
    precision: str
    d_model: int
    n_mels: int
    n_audio_positions: int
    n_text_positions: int
    n_decoder_layers: int
    vocab_size: int
    suppress: tuple[int, ...]
    suppress_begin: tuple[int, ...]
    is_multilingual: bool

    @classmethod
    def read(cls, path: Path) -> Facts:
        """Read `facts.json`. Raises `ModelError`."""
        try:
            raw = read_json(path)
            raw["suppress"], raw["suppress_begin"] = tuple(raw["suppress"]), tuple(raw["suppress_begin"])
            return cls(**raw)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{path}: {error}", "as2d models verify, then as2d models pull") from error
