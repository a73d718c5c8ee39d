"""Which backend and precision a model runs with: by what is asked for, what is installed and the processor.

Never by timing: the text must be the same from run to run.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from ctypes import CDLL
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast, get_args

from as2d_cli.plugin import ModelError
from as2d_whisper.options import BackendName

if TYPE_CHECKING:  # every command settles options, also one that runs no model
    from as2d_cli.plugin import OptionValue
    from as2d_whisper.backends.backend import AlignmentHeads, Backend
    from as2d_whisper.checkpoint import Checkpoint
    from as2d_whisper.facts import Facts

_PRECISIONS = ("bf16", "f32")
_X86 = frozenset({"x86_64", "amd64"})


def settle(options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Return a model's options with the backend and precision that they come to on this machine.

    Raises `ModelError` for a backend that does not exist, or that this machine has not.
    """
    asked = options.get("backend", "auto")
    if asked not in ("auto", *get_args(BackendName)):
        raise ModelError(f"option backend is {asked!r}", "it can be auto, mnn or openvino")
    precision = options.get("precision")
    if precision not in (None, *_PRECISIONS):
        raise ModelError(f"option precision is {precision!r}", f"it can be {' or '.join(_PRECISIONS)}")
    if asked == "openvino" and (flaw := _openvino_flaw()):
        raise ModelError(f"backend openvino cannot be used: {flaw}", "leave out --backend, or use mnn")
    if asked == "mnn" and precision == "bf16":
        raise ModelError("backend mnn computes in f32", "leave out the option precision, or use openvino")
    if asked == "mnn" or (asked == "auto" and (_openvino_flaw() or not _multiplies_bytes())):
        return {**options, "backend": "mnn", "precision": "f32"}
    best = "bf16" if cpu_flags() & {"avx512_bf16", "amx_bf16"} else "f32"
    return {**options, "backend": "openvino", "precision": precision or best}


class WriteGraphs(Protocol):
    """Writes the graphs that a backend loads."""

    def __call__(
        self, checkpoint: Checkpoint, heads: AlignmentHeads, destination: Path, options: Mapping[str, object]
    ) -> None:
        """Write them to the folder `destination`. Raises `ModelError`."""


def graph_writer(options: Mapping[str, object]) -> WriteGraphs:
    """Return what writes the graphs for the backend of settled options."""
    if options["backend"] == "openvino":
        from as2d_whisper.backends.openvino import graph

        return graph.write_graphs
    from as2d_whisper.backends.mnn import convert

    return convert.write_graphs


def load_backend(
    folder: Path, facts: Facts, *, threads: int, decode_threads: int, exact_rows: bool
) -> Backend:
    """Load the converted model in `folder`. Raises `ModelError`."""
    if facts.backend == "openvino":
        from as2d_whisper.backends.openvino.backend import OpenVinoBackend

        return cast(
            "Backend",
            OpenVinoBackend(
                folder, facts, threads=threads, decode_threads=decode_threads, exact_rows=exact_rows
            ),
        )
    from as2d_whisper.backends.mnn.backend import MnnBackend

    return cast(
        "Backend",
        MnnBackend(folder, facts, threads=threads, decode_threads=decode_threads, exact_rows=exact_rows),
    )


@cache
def _openvino_flaw() -> str | None:
    """Return why OpenVINO cannot be used on this machine, None if it can."""
    if platform.machine().lower() not in _X86:
        return f"it is for x86-64 processors, and this is {platform.machine()}"
    found = find_spec("openvino")
    if found is None:
        return "the package openvino is not installed"
    for folder in found.submodule_search_locations or ():
        for library in sorted(
            Path(folder, "libs").glob("*openvino.*")
        ):  # to import all takes 30 times as long
            try:
                CDLL(str(library))
            except OSError as error:
                return f"{library.name} cannot be loaded: {error}"
    return None


def _multiplies_bytes() -> bool:
    """Tell whether the processor has VNNI: without it, MNN is as fast."""
    return bool(cpu_flags() & {"avx512_vnni", "avx_vnni"})


@cache
def cpu_flags() -> frozenset[str]:
    """Return the processor's features as Linux names them; elsewhere those that OpenVINO tells of."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return _flags_by_openvino()
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), ()))


def _flags_by_openvino() -> frozenset[str]:
    from as2d_whisper.backends.openvino.runtime import capabilities

    names = {"INT8": "avx_vnni", "BF16": "avx512_bf16"}
    try:
        return frozenset(names[name] for name in capabilities() & names.keys())
    except (ImportError, RuntimeError):  # not for this system
        return frozenset()
