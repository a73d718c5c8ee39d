"""Graphs of audio encoders: log-mel features in, embeddings out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import Features, ModelError, heard_frames, import_native, stdout_to_nobody

Encode: TypeAlias = Callable[[Features], NDArray[np.float32]]
"""Returns the embeddings of a window's audio, shape (n, hidden)."""

MEMORY_HIGH, MEMORY_LOW = 1, 2
"""Compute in float32, or keep quantised weights quantised; MNN reads it only as an integer."""


def heard(features: Features, at_least: int) -> Features:
    """Return the frames of a window up to the end of its audio, and no fewer than `at_least`."""
    return features[:, : max(heard_frames(features), at_least)]


class AudioGraph:
    """A graph of an export that takes and gives float32."""

    def __init__(
        self,
        path: Path,
        threads: int,
        inputs: Sequence[str],
        output: str = "audio_embeds",
        memory: int = MEMORY_LOW,
    ) -> None:
        """Load the graph. Raises `ModelError` if it is missing or broken."""
        weights = path.with_name(f"{path.name}.weight")
        if not path.is_file():
            raise ModelError(f"{path}: missing: the export has no audio encoder", "export the model with it")
        with stdout_to_nobody():
            import_native("_mnncengine")
            from MNN import expr, nn  # importing it prints

        settings = {"backend": "CPU", "numThread": threads, "precision": "high", "memory": memory}
        self._path, self._expr = path, expr
        self._runtime = nn.create_runtime_manager((settings,))
        if weights.is_file():
            self._runtime.set_external(str(weights))
        try:
            self._module = nn.load_module_from_file(
                str(path), list(inputs), [output], runtime_manager=self._runtime, shape_mutable=True
            )
        except SystemError:  # what the wheel makes of a file that is no model
            self._module = None
        if self._module is None:
            raise ModelError(f"{path}: MNN cannot load it", "export or fetch the model anew")

    def run(self, *inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the output as rows of its last axis. Raises `ModelError` if MNN fails."""
        expr = self._expr
        given = [
            expr.const(np.ascontiguousarray(one, np.float32), list(one.shape), expr.NCHW, expr.float)
            for one in inputs
        ]
        outputs = self._module.forward(given)
        if not outputs:
            raise ModelError(f"{self._path}: MNN failed to run it", "is there enough memory?")
        rows = np.array(outputs[0].read())
        return rows.reshape(-1, rows.shape[-1])
