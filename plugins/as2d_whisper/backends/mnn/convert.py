"""Makes MNN's graphs of a checkpoint.

The native converter is entered directly. MNN's `mnnconvert` script is never used: it installs and
runs a telemetry package (docs/decisions/0002-converter.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from as2d_cli.plugin import ModelError, import_native
from as2d_whisper.backends.backend import AlignmentHeads, weight_bits
from as2d_whisper.backends.mnn.graph import build_decoder, build_encoder
from as2d_whisper.checkpoint import Checkpoint

QUANT_BLOCK = 64
_WEIGHT_BITS = (2, 4, 8, 16, 32)


def onnx_to_mnn(
    onnx_path: Path, mnn_path: Path, *, weight_bits: int = 32, extra_args: Sequence[str] = ()
) -> None:
    """Convert one ONNX file with `weight_bits` per weight. Raises `ModelError`.

    Prints to the process's stdout; callers run it in a child process.
    """
    if weight_bits not in _WEIGHT_BITS:
        raise ModelError(f"{weight_bits} weight bits asked for", f"use one of {_WEIGHT_BITS}")
    arguments = ["mnnconvert", "-f", "ONNX", "--modelFile", str(onnx_path), "--MNNModel", str(mnn_path)]
    arguments += ["--bizCode", "as2d", "--saveExternalData", *extra_args]
    if weight_bits == 16:
        arguments.append("--fp16")
    elif weight_bits < 16:
        arguments += ["--weightQuantBits", str(weight_bits), "--weightQuantBlock", str(QUANT_BLOCK)]
    import_native("_tools").mnnconvert(arguments)  # the wheel's native converter
    if not mnn_path.is_file() or mnn_path.stat().st_size == 0:
        raise ModelError(f"MNN could not convert {onnx_path.name}")


def write_graphs(
    checkpoint: Checkpoint, heads: AlignmentHeads, destination: Path, options: Mapping[str, object]
) -> None:
    """Write `encoder.mnn` and `decoder.mnn` with their weights. Raises `ModelError`."""
    encoder_bits = weight_bits(options, "encoder_bits", 32, _WEIGHT_BITS)
    decoder_bits = weight_bits(options, "decoder_bits", 8, _WEIGHT_BITS)
    with TemporaryDirectory(dir=destination) as scratch:
        onnx_path = Path(scratch) / "graph.onnx"
        build_encoder(checkpoint, onnx_path)
        onnx_to_mnn(onnx_path, destination / "encoder.mnn", weight_bits=encoder_bits)
        build_decoder(checkpoint, heads, onnx_path)
        onnx_to_mnn(onnx_path, destination / "decoder.mnn", weight_bits=decoder_bits)
