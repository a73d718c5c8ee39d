"""The few calls this plugin makes into MNN, with its traps fenced off.

MNN keeps the GIL during a call, returns views into memory that it owns, reads `memory` only as an
integer, and prints to file descriptor 1 when it starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError, import_native, stdout_to_nobody

_MEMORY_LOW = 2  # keep quantised weights quantised


class Var:
    """An MNN tensor that is kept alive as long as arrays that view it may be used."""

    __slots__ = ("handle",)

    def __init__(self, handle: Any) -> None:  # noqa: ANN401  # an untyped native object
        self.handle = handle

    def view(self) -> NDArray[np.float32]:
        """Return the tensor as an array that is valid only while this `Var` lives."""
        array: NDArray[np.float32] = self.handle.read()
        return array

    def copy(self) -> NDArray[np.float32]:
        """Return the tensor as an array of its own."""
        return np.array(self.handle.read())


@cache
def _expr() -> Any:  # noqa: ANN401 - an untyped module
    """Import MNN's operators: once, as a pass makes several tensors."""
    import_native("_mnncengine")
    import MNN.expr

    return MNN.expr


def constant(array: NDArray[np.float32]) -> Var:
    """Copy a C-contiguous float32 array into a new tensor."""
    expr = _expr()
    return Var(expr.const(array, list(array.shape), expr.NCHW, expr.float))


class Graph:
    """A loaded MNN graph with fixed input and output names."""

    def __init__(self, path: Path, inputs: Sequence[str], outputs: Sequence[str], threads: int) -> None:
        """Load `path` and the weights beside it. Raises `ModelError` if they are missing or broken.

        Shapes may change from run to run. (With `shape_mutable=False` MNN would need less memory, but
        then the outputs of one run are overwritten by the next.)
        """
        weights = path.with_name(f"{path.name}.weight")  # apart, or MNN would keep them in memory twice
        for file in (path, weights):
            if not file.is_file():
                raise ModelError(f"{file}: missing", "as2d models verify, then as2d models pull")
        with stdout_to_nobody():
            import_native("_mnncengine")
            from MNN import nn  # importing it prints

            settings = {"backend": "CPU", "numThread": threads, "precision": "high", "memory": _MEMORY_LOW}
            self._runtime = nn.create_runtime_manager((settings,))
            self._runtime.set_external(str(weights))
            try:
                self._module = nn.load_module_from_file(
                    str(path),
                    list(inputs),
                    list(outputs),
                    runtime_manager=self._runtime,
                    shape_mutable=True,
                )
            except SystemError:  # what the wheel makes of a file that is no model
                self._module = None
        if self._module is None:
            raise ModelError(f"{path}: MNN cannot load it", "as2d models verify, then as2d models pull")

    def clone(self) -> Graph:
        """Return a graph that shares the weights with this one, but is laid out for its own input shapes."""
        other = object.__new__(Graph)
        other._runtime, other._module = self._runtime, self._module.clone()
        return other

    def run(self, *inputs: Var) -> list[Var]:
        """Run the graph. Raises `ModelError` if MNN gives nothing back (out of memory, bad shapes)."""
        outputs = self._module.forward([item.handle for item in inputs])
        if not outputs:
            raise ModelError("MNN failed to run a graph", "is there enough memory?")
        return [Var(item) for item in outputs]
