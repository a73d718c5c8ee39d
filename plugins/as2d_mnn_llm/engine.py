"""A language model in MNN's LLM engine, with its traps fenced off.

What must be known of MNN 3.6.1: `create` of a missing file succeeds and `load` then answers False; calls
hold the GIL; arrays are views into memory that the engine reuses at its next pass; a pass gives logits of
all its rows only if a speculative mode is set before loading and the engine believes that it has generated
something (`gen_seq_len`); erased cache is dropped by the next pass, and until then the engine's own
lengths mean different things, so lengths are counted here. The engine prints to file descriptor 1;
workers and conversions have that pointed away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import (
    ModelError,
    TokenIds,
    best_of_rows,
    import_native,
    logprobs_of,
    read_model_json,
    stdout_to_nobody,
)

Memory = Literal["low", "high"]
"""low: weights stay quantised, and activations are rounded to 8 bits; high: float32 throughout."""

MAX_ROWS = 24
"""Most rows of a pass that gives logits of all of them."""

_NO_PASS = 1 << 13
"""More rows than any pass or prompt has. With mrope, MNN 3.6.1 leaves two of three rows of positions of a
pass of `draft_predict_length` + 1 rows as they were (`Llm::gen_position_ids`)."""

_HINT = "as2d models verify, then as2d models pull"
OLD = "export it anew: only exports of llmexport since MNN 3.1 give logits of all rows"
"""What to do with a graph of another form."""


class Engine:
    """One loaded model with one cache of keys and values."""

    def __init__(
        self, folder: Path, threads: int, memory: Memory = "low", settings: Mapping[str, object] | None = None
    ) -> None:
        """Load the export in `folder`; `settings` override those of its config.json.

        Raises `ModelError` if a file is missing or broken.
        """
        _check_files(folder)
        self.folder = folder
        ours = {
            "thread_num": threads,
            "memory": memory,
            "precision": "high",
            "reuse_kv": True,
            "speculative_type": "lookahead",  # never used as such: it makes logits of all rows available
            "draft_predict_length": _NO_PASS - 1,
        }
        self._output: Any = None  # its logits are valid as long as it lives and no other pass is run
        self._length = 0
        self._turn = 0
        with stdout_to_nobody():  # MNN prints what it finds
            import_native("_mnncengine")
            import MNN.llm

            self._wrapper = MNN.llm.create(str(folder / "config.json"))
            self._wrapper.set_config({**ours, **(settings or {})})
            self._native = self._wrapper._c_obj
            try:
                loaded = self._native.load()
            except (RuntimeError, SystemError) as error:
                raise ModelError(f"{folder}: MNN cannot load it: {error}", _HINT) from error
        if not loaded:
            raise ModelError(f"{folder}: MNN cannot load it", _HINT)

    def __del__(self) -> None:
        """Let go of the last output before the model: MNN crashes when it outlives it."""
        self._output = None

    @property
    def length(self) -> int:
        """Tokens in the cache."""
        return self._length

    @property
    def turn(self) -> int:
        """How often the cache was reset: a session of an earlier turn has lost its own."""
        return self._turn

    def reset(self, kept: int = 0) -> None:
        """Empty the cache but for its first `kept` tokens. Raises `ModelError` if it has not as many."""
        if kept:
            self.rollback(kept)
        else:
            self._native.reset()
            self._length = 0
        self._turn += 1

    def prefill(self, tokens: Sequence[int]) -> int:
        """Append `tokens`, any number; return the greedy next one after the last."""
        return int(best_of_rows(self._run(tokens, every_row=False))[0])

    def forward(self, tokens: Sequence[int]) -> TokenIds:
        """Append up to `MAX_ROWS` tokens; return the greedy next one after each, shape (len(tokens),).

        Raises `ModelError` for another number, or if MNN fails.
        """
        if not 0 < len(tokens) <= MAX_ROWS:
            raise ModelError(f"a pass of {len(tokens)} rows; expected 1 to {MAX_ROWS}")
        ids: TokenIds = best_of_rows(self._run(tokens, every_row=True)).astype(np.int32)
        return ids

    def logits(self) -> NDArray[np.float32]:
        """Return a copy of the last pass's logits, shape (rows, vocabulary)."""
        return np.array(self._view())

    def probability(self) -> float:
        """Return the probability of the greedy token after the last pass's last row."""
        last = self._view()[-1:]
        return float(np.exp(logprobs_of(last, best_of_rows(last))[0]))

    def rollback(self, length: int) -> None:
        """Keep the first `length` tokens. Raises `ModelError` for a length that is not cached."""
        if not 0 <= length <= self._length:
            raise ModelError(f"rollback to {length} tokens of {self._length}")
        if length < self._length:
            self._native.erase_history(length, 0)  # 0: to the end
            self._length = length

    def _run(self, tokens: Sequence[int], *, every_row: bool) -> NDArray[np.float32]:
        self._native.set_context({"gen_seq_len": int(every_row)})
        self._output = self._native.forward(list(map(int, tokens)))
        self._length += len(tokens)
        logits = self._view()
        if len(logits) != (len(tokens) if every_row else 1):
            raise ModelError(f"{self.folder}: gives logits of {len(logits)} of {len(tokens)} rows", OLD)
        return logits

    def _view(self) -> NDArray[np.float32]:
        if self._output is None or not self._output.shape:
            raise ModelError(f"{self.folder}: MNN failed to run it", "is there enough memory?")
        logits: NDArray[np.float32] = self._output.read()
        if logits.ndim != 3 or len(logits) != 1:  # a batch of one, rows, vocabulary
            raise ModelError(f"{self.folder}: gives logits of shape {logits.shape}", OLD)
        rows: NDArray[np.float32] = logits[0]
        return rows


def _check_files(folder: Path) -> None:
    """Look for the files that an export needs. Raises `ModelError` naming one that is missing or broken."""
    for name in ("config.json", "llm_config.json"):
        settings = read_model_json(folder / name, _HINT)
        if name == "config.json":
            defaults = {"llm_model": "llm.mnn", "llm_weight": "llm.mnn.weight"}
            for key, usual in defaults.items():
                file = folder / str(settings.get(key, usual))
                if not file.is_file():
                    raise ModelError(f"{file}: missing", _HINT)
