"""The LLM engine fed with embeddings: of a text's tokens, and of what an audio encoder made of sound.

The engine's own way for audio takes waveforms, while a drafter and a target here share features; it also
knows no windows inside the encoder, and not all encoders. But it looks embeddings up in a file, row by row
at the moment of use, and does not care what the file is. So it is given a small one of this process's own:
before each pass the rows that it is about to need are written there, whatever they are rows of.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError, is_plain_name, read_model_json
from as2d_mnn_llm.engine import Engine, Memory
from as2d_mnn_llm.export.decoder import TOKENIZER_STUB
from as2d_mnn_llm.export.graph import MAX_LAYERS

_HINT = "export or fetch the model anew"
_BFLOAT16_BYTES = 2
_ROWS = 4096
"""Most rows of one pass: a window of audio, a prompt and a long passage are a fraction of it."""
_FILES = {
    "llm_model": "llm.mnn",
    "llm_weight": "llm.mnn.weight",
    "embedding_file": "embeddings_bf16.bin",
}
_SETTINGS: Mapping[str, type] = {
    **{"model_type": str, "attention_mask": str, "attention_type": str},
    **{"hidden_size": int, "layer_nums": int, "sliding_window": int},
}
"""What the engine is told of an export's llm_config.json: it reads much more, such as places to write to."""
_APART_BYTES = 1 << 20
"""Distance that the engine's buffered file never reads across at once."""


class SplicedEngine(Engine):
    """An engine whose ids from `vocab_size` on are rows of the sound that `hear` was given last."""

    def __init__(self, folder: Path, threads: int, memory: Memory = "low", *, mrope: bool = False) -> None:
        """Load the export in `folder`; `mrope`: whether its graph takes three rows of positions.

        Raises `ModelError` if it is broken or has no table of embeddings.
        """
        model, files = (read_model_json(folder / name, _HINT) for name in ("llm_config.json", "config.json"))
        self._width = _width(folder, model)
        paths = {key: _path(folder, files, key, usual) for key, usual in _FILES.items()}
        self._table = _table(paths["embedding_file"], self._width)
        self._sound: NDArray[np.uint16] = np.empty((0, self._width), np.uint16)
        self._second = 0
        region = max(_ROWS * self._width * _BFLOAT16_BYTES, _APART_BYTES)
        self._region_rows = -(-region // (self._width * _BFLOAT16_BYTES))
        with tempfile.TemporaryDirectory(prefix="as2d-", ignore_cleanup_errors=True) as private:
            self._file = _write_private(Path(private), _plain(folder, model) | {"is_mrope": mrope}, paths)
            super().__init__(Path(private), threads, memory)
        self.folder = folder

    def __del__(self) -> None:
        """Close the file of rows."""
        super().__del__()
        if hasattr(self, "_file"):
            os.close(self._file)

    @property
    def vocab_size(self) -> int:
        """Rows of the model's own table of embeddings."""
        return len(self._table)

    def hear(self, rows: NDArray[np.float32]) -> range:
        """Take embeddings of sound, shape (n, hidden); return the ids that mean them until the next call.

        Raises `ModelError` if they have another width than the model's own.
        """
        if rows.ndim != 2 or rows.shape[1] != self._width:  # a matrix
            raise ModelError(f"{self.folder}: audio of shape {rows.shape} for a model of {self._width}")
        self._sound = to_bfloat16(rows)
        return range(self.vocab_size, self.vocab_size + len(rows))

    def _run(self, tokens: Sequence[int], *, every_row: bool) -> NDArray[np.float32]:
        if len(tokens) > _ROWS:
            raise ModelError(f"a prompt of {len(tokens)} tokens; the most is {_ROWS}")
        ids = np.asarray(tokens)
        known = ids < self.vocab_size
        rows = np.empty((len(ids), self._width), np.uint16)
        rows[known] = self._table[ids[known]]
        rows[~known] = self._sound[ids[~known] - self.vocab_size]
        # The engine reads through a buffer, which may still hold what was last read of the file. So the rows
        # of two passes in turn lie further apart than any buffer is long.
        self._second = 1 - self._second
        first = self._second * 2 * self._region_rows
        os.pwrite(self._file, rows.tobytes(), first * self._width * _BFLOAT16_BYTES)
        return super()._run(range(first, first + len(ids)), every_row=every_row)


def to_bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return the bits of `values` rounded to the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded: NDArray[np.uint16] = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return rounded


def _width(folder: Path, model: Mapping[str, object]) -> int:
    width = model.get("hidden_size")
    if type(width) is not int or width < 1:
        raise ModelError(f"{folder / 'llm_config.json'}: no hidden_size", _HINT)
    return width


def _table(path: Path, width: int) -> NDArray[np.uint16]:
    """Map the table of embeddings, shape (vocabulary, hidden), bits of bfloat16. Raises `ModelError`."""
    hint = "export it with embeddings of their own, as `as2d models export` does (llmexport --seperate_embed)"
    if not path.is_file():
        raise ModelError(f"{path}: the export has no table of embeddings", hint)
    row = width * _BFLOAT16_BYTES
    if not path.stat().st_size or path.stat().st_size % row:
        raise ModelError(f"{path}: not rows of {width} bfloat16 numbers", hint)
    table: NDArray[np.uint16] = np.memmap(path, np.uint16, "r", shape=(path.stat().st_size // row, width))
    return table


def _path(folder: Path, files: Mapping[str, object], key: str, usual: str) -> Path:
    """Return the file that an export has for `key`. Raises `ModelError` for one that is not in its folder."""
    name = files.get(key, usual)
    if not isinstance(name, str) or not is_plain_name(name):
        raise ModelError(f"{folder / 'config.json'}: {key} is {name!r}: not a file of the export", _HINT)
    return folder / name


def _plain(folder: Path, model: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of the text model alone. Raises `ModelError` for one of the wrong kind."""
    for key, kind in _SETTINGS.items():
        if key in model and type(model[key]) is not kind:
            raise ModelError(f"{folder / 'llm_config.json'}: {key} is not of the right kind", _HINT)
    layers = model.get("layer_nums")
    if not isinstance(layers, int) or not 0 < layers <= MAX_LAYERS:
        raise ModelError(f"{folder / 'llm_config.json'}: no number of layers that can be", _HINT)
    return {key: model[key] for key in _SETTINGS if key in model}


def _write_private(private: Path, model: Mapping[str, object], paths: Mapping[str, Path]) -> int:
    """Write settings by which the engine loads the text model alone; open the file of its rows.

    All of it may be deleted once the engine has loaded: it keeps the file of rows open, as the caller does.
    """
    own = {key: str(path.absolute()) for key, path in paths.items()}
    own |= {"base_dir": "", "embedding_file": str(private / "rows.bin")}
    own |= {"llm_config": str(private / "llm_config.json"), "tokenizer_file": str(private / "tokenizer.txt")}
    (private / "tokenizer.txt").write_text(TOKENIZER_STUB, encoding="utf-8")
    (private / "llm_config.json").write_text(json.dumps(model), encoding="utf-8")
    (private / "config.json").write_text(json.dumps(own), encoding="utf-8")
    return os.open(private / "rows.bin", os.O_RDWR | os.O_CREAT, 0o600)
