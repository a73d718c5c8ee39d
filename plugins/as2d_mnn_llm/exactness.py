"""Finds out which numbers of rows a loaded model may decide together.

With quantised weights MNN's matrix kernels round activations, and how depends on how rows fall into the
kernels' tiles: passes of 2, 3, 4, 8, 12, 16 or 24 rows give the very same bits, those of 1, 6 or 17 others
by 5 to 15 % of the logits' spread. Which counts agree differs by model, and may differ by processor and
number of threads; so it is tried, once for each, in a process of its own: MNN crashes on graphs that are not
what their settings say.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError, device, read_sealed, run_apart, write_sealed
from as2d_mnn_llm.engine import MAX_ROWS, OLD, Engine

FILE = "row_counts"
_TRIED = (1, 2, 3, 4, 8, 12, 16, 24)
"""Others may agree on some tokens, not on the next: 5, 6, 9 and 17 have, with SmolLM2 and Qwen2.5."""
_PREFIX = 8
_PASSES = 2
_TOLERANCE = 1e-3
"""Largest difference of logits, as a share of their spread: float32 noise is a hundredth of it."""


def safe_rows(load: Callable[[], Engine], folder: Path, key: str) -> tuple[int, ...]:
    """Return the row counts that agree, ascending; found anew for each `key` and kept beside the model.

    `load` loads the model of `folder`, and can be pickled. It is called in another process, so call this
    before the model is loaded here, too: the memory is then never needed twice. `key` names what may change
    the counts besides the device and MNN: threads, settings. Raises `ModelError` if the model does not run
    or no two counts agree.
    """
    path = folder / FILE
    key = f"MNN {metadata.version('MNN')}, {device()}, {key}"
    known = _read(path)
    if key not in known:
        known[key] = try_apart(load, folder)
        with suppress(OSError):  # a read-only cache: found again next time
            write_sealed(path, json.dumps(known).encode())  # damage would change texts
    return tuple(known[key])


def try_apart(load: Callable[[], Engine], folder: Path) -> list[int]:
    """Find row counts that agree in another process, which may die; see `safe_rows`."""
    try:
        return run_apart("try rows", find_safe_rows, load)
    except ChildProcessError as error:
        raise ModelError(f"{folder}: MNN crashes when it runs the model: {error}", OLD) from error


def find_safe_rows(load: Callable[[], Engine]) -> list[int]:
    """Return the largest set of row counts that agree with the longest possible pass.

    Raises `ModelError` if the model does not run or no two counts agree.
    """
    engine = load()
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
