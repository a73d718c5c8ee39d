"""The few calls this plugin makes into OpenVINO, without what its Python package starts besides.

`import openvino` also imports a converter, and with it a telemetry client. Neither is needed, so the
converter is marked as missing first, which the package allows for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import ModelError

GROUP = 64
"""Values that share a scale where activations are quantised. Larger groups are faster and less exact."""


@cache
def openvino() -> Any:  # noqa: ANN401 - an untyped module
    """Import OpenVINO. Raises `ImportError` where it is not installed or does not fit the system."""
    sys.modules.setdefault("openvino.tools.ovc", None)  # type: ignore[arg-type]
    import openvino

    return openvino


@cache
def _core() -> Any:  # noqa: ANN401
    return openvino().Core()


def capabilities() -> frozenset[str]:
    """Return what the processor can multiply, as OpenVINO calls it: "FP32", "INT8", "BF16" and others."""
    return frozenset(_core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"))


class Graph:
    """A compiled graph with one request, which runs one pass at a time."""

    def __init__(self, path: Path, *, threads: int, precision: str) -> None:
        """Read and compile `path`. Raises `ModelError` if it is missing or broken.

        `precision` is "bf16" or "f32". Threads are not pinned: two processes would sit on one core.
        """
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": "1",
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": precision,
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": str(GROUP),
            "ENABLE_CPU_PINNING": False,
            "ENABLE_HYPER_THREADING": True,
        }
        if not path.is_file():
            raise ModelError(f"{path}: missing", "as2d models verify, then as2d models pull")
        try:
            self._request = _core().compile_model(str(path), "CPU", settings).create_infer_request()
        except RuntimeError as error:
            hint = "as2d models verify, then as2d models pull"
            raise ModelError(f"{path}: OpenVINO cannot load it: {_last_line(error)}", hint) from error

    def bind(self, tensors: Mapping[str, Any]) -> None:
        """Take inputs from these tensors, and write outputs into them, until others are bound."""
        for name, tensor in tensors.items():
            self._request.set_tensor(name, tensor)

    def run(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Run with these inputs and those that are bound. Raises `ModelError` if that fails."""
        try:
            for name, array in arrays.items():
                self._request.set_tensor(name, openvino().Tensor(array))
            self._request.infer()
        except RuntimeError as error:
            raise ModelError(f"OpenVINO failed: {_last_line(error)}", "is there enough memory?") from error

    def output(self, name: str) -> NDArray[Any]:
        """Return an output as an array that is valid until the next run; bfloat16 as two-byte values."""
        return data(self._request.get_tensor(name))


def new_tensor(shape: tuple[int, ...], precision: str) -> Any:  # noqa: ANN401
    """Return a tensor of zeros in the precision that keys and values are kept in."""
    tensor = openvino().Tensor(getattr(openvino().Type, precision), openvino().Shape(shape))
    data(tensor)[...] = 0
    return tensor


def data(tensor: Any) -> NDArray[Any]:  # noqa: ANN401
    """Return the memory of a tensor; bfloat16, which numpy does not know, as two-byte values."""
    array: NDArray[Any] = tensor.data
    return array.view(np.uint16) if array.itemsize == 2 else array


def _last_line(error: RuntimeError) -> str:
    """Return what went wrong; the lines before it say where in OpenVINO."""
    return str(error).strip().splitlines()[-1]
