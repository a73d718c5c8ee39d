"""Finds out which numbers of rows a loaded model may decide together.

With quantised weights MNN's matrix kernels round activations, and how depends on how rows fall into the
kernels' tiles: passes of 2, 3, 4, 8, 12, 16 or 24 rows give the very same bits, those of 1, 6 or 17 others
by 5 to 15 % of the logits' spread. Which counts agree differs by model, and may differ by processor and
number of threads; so it is tried, once for each.
"""

from __future__ import annotations

import json
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError, device, read_sealed, stdout_to_nobody, write_sealed
from as2d_mnn_llm.engine import MAX_ROWS, Engine

FILE = "row_counts"
_TRIED = (1, 2, 3, 4, 8, 12, 16, 24)
"""Others may agree on some tokens, not on the next: 5, 6, 9 and 17 have, with SmolLM2 and Qwen2.5."""
_PREFIX = 8
_PASSES = 2
_TOLERANCE = 1e-3
"""Largest difference of logits, as a share of their spread: float32 noise is a hundredth of it."""


def safe_rows(engine: Engine, key: str) -> tuple[int, ...]:
    """Return the row counts that agree, ascending; found anew for each `key` and kept beside the model.

    `key` names what may change them besides the device and MNN: threads, settings. Empties the cache.
    Raises `ModelError` if no two counts agree.
    """
    path = engine.folder / FILE
    key = f"MNN {metadata.version('MNN')}, {device()}, {key}"
    known = _read(path)
    if key not in known:
        with stdout_to_nobody():  # MNN tells of each count that is new to it
            known[key] = _find_safe_rows(engine)
        with suppress(OSError):  # a read-only cache: found again next time
            write_sealed(path, json.dumps(known).encode())  # damage would change texts
    return tuple(known[key])


def _find_safe_rows(engine: Engine) -> list[int]:
    """Return the largest set of row counts that agree with the longest possible pass. Empties the cache.

    Raises `ModelError` if no two counts agree.
    """
    decided = {rows: _decide(engine, rows) for rows in _TRIED}
    best: list[int] = []
    for reference in reversed(_TRIED):
        agreeing = [rows for rows in _TRIED if _agree(decided[rows], decided[reference])]
        if len(agreeing) > len(best):
            best = agreeing
    if len(best) < 2:  # nothing could be verified together
        raise ModelError(
            f"{engine.folder}: no two numbers of rows give the same logits", "try memory = 'high'"
        )
    return best


def _decide(engine: Engine, rows: int) -> NDArray[np.float32]:
    """Return the logits of the first passes of `rows` rows over the same tokens."""
    engine.reset()
    passes = min(_PASSES, MAX_ROWS // rows)
    tokens = np.random.default_rng(0).integers(0, 256, _PREFIX + MAX_ROWS).tolist()  # in any vocabulary
    engine.prefill(tokens[:_PREFIX])
    found = []
    for start in range(_PREFIX, _PREFIX + passes * rows, rows):
        engine.forward(tokens[start : start + rows])
        found.append(engine.logits())
    return np.concatenate(found)


def _agree(one: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    length = min(len(one), len(other))
    one, other = one[:length], other[:length]
    near = np.abs(one - other).max() <= _TOLERANCE * other.std()
    return bool(near and np.array_equal(one.argmax(axis=1), other.argmax(axis=1)))


def _read(path: Path) -> dict[str, list[int]]:
    try:
        known: dict[str, list[int]] = json.loads(read_sealed(path))
    except (OSError, ValueError):
        return {}
    return known
