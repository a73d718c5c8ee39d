"""Exports checkpoints of audio language models with llmexport, PyTorch's side of MNN's LLM engine.

llmexport converts through a script of the MNN wheel that installs a package and sends what it is given to a
server. It is kept out of the process (docs/decisions/0002-converter.md): llmexport finds a module in its
place that calls the native converter and nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from as2d_cli.plugin import ModelError, import_native, read_model_json
from as2d_mnn_llm.hub_tokenizer import take_tokenizer

EXTRA = 'pip install "as2d[export]"'
_NEEDED = ("torch", "transformers", "llmexport")
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_UNQUANTISED, _BLOCK = 16, 64
_LEAST_BITS = 8
"""Least precision of the audio encoder, whose errors every token of the text would see, and of the head."""


def export(source: Path, destination: Path, bits: int, *, hqq: bool = False) -> None:
    """Export the checkpoint in `source`, as the hub has it, to the folder `destination`, which must be new.

    `bits` is the precision of the decoder's weights: 16, 8 or 4. With `hqq` these are rounded by
    half-quadratic quantisation (Badri and Shaji 2023), which MNN's documentation recommends for 4.
    Raises `ModelError` if the extra `export` is not installed, the checkpoint brings code of its own, or it
    cannot be exported.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelError(f"exporting a checkpoint needs {', '.join(missing)}", f"run: {EXTRA}")
    source, destination = source.absolute(), destination.absolute()
    _check(source)
    with tempfile.TemporaryDirectory(dir=destination.parent) as staging, _native_converter_only():
        folder = Path(staging) / "model"
        hearing = Path(staging) / "hearing"
        _write_hearing_part(source, hearing)
        with _current_folder(Path(staging)):  # llmexport leaves a log there
            _run(hearing, folder, _options(bits, hqq=hqq), max(bits, _LEAST_BITS))
        take_tokenizer(source, folder)
        for left in ("onnx", "llm.mnn.json", "export_args.json"):
            _remove(folder / left)
        folder.rename(destination)


@contextlib.contextmanager
def _current_folder(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _check(source: Path) -> None:
    """Raise `ModelError` for a checkpoint that could have code run.

    llmexport trusts it: code that any of its settings names in an `auto_map` would be run, here or from the
    hub, and weights that are not safetensors would be unpickled.
    """
    settings = {source / "config.json", *source.rglob("*config*.json")}
    for path in sorted(settings):
        if _names_code(read_model_json(path)):
            raise ModelError(f"{path}: the checkpoint brings code of its own, which is never run")
    if not any((source / name).is_file() for name in _WEIGHTS):
        raise ModelError(f"{source}: no {' and no '.join(_WEIGHTS)}", "other forms of weights can hold code")


def _names_code(settings: object) -> bool:
    waiting = [settings]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if "auto_map" in part:
                return True
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return False


def _write_hearing_part(source: Path, folder: Path) -> None:
    """Make a checkpoint of the part that hears: the same files, with settings that leave the rest out.

    Speaking and seeing would be loaded in float32, gigabytes of it.
    """
    folder.mkdir()
    for file in source.iterdir():
        (folder / file.name).symlink_to(file)
    settings = read_model_json(source / "config.json")
    thinker = settings.get("thinker_config")
    if not isinstance(thinker, dict) or not isinstance(thinker.get("vision_config"), dict):
        return
    vision = {**thinker["vision_config"], "depth": 0}
    hearing = {
        **settings,
        "enable_audio_output": False,
        "thinker_config": {**thinker, "vision_config": vision},
    }
    (folder / "config.json").unlink()
    (folder / "config.json").write_text(json.dumps(hearing), encoding="utf-8")


def _options(bits: int, *, hqq: bool) -> list[str]:
    block = 0 if bits == _UNQUANTISED else _BLOCK
    options = ["--quant_bit", bits, "--quant_block", block, "--lm_quant_bit", max(bits, _LEAST_BITS)]
    # The plugin reads rows of the table of embeddings itself, to put audio between them.
    return [*map(str, options), "--export", "mnn", "--seperate_embed", *(["--hqq"] if hqq else [])]


def _run(source: Path, folder: Path, options: list[str], encoder_bits: int) -> None:
    try:
        llmexport = _llmexport()
        parser = argparse.ArgumentParser()
        llmexport.build_args(parser)
        paths = ["--path", str(source), "--dst_path", str(folder)]
        exporter = llmexport.LlmExporter(parser.parse_args([*paths, *options]))
        exporter.visual = exporter.talker = None  # neither sees nor speaks
        if exporter.audio is not None:
            exporter.audio.quant_bit = encoder_bits
        with importlib.import_module("torch").no_grad():  # gigabytes of the encoder's states would be kept
            exporter.export("mnn")
    except (Exception, SystemExit) as error:  # llmexport exits, transformers raises whatever it likes
        raise ModelError(f"{source}: llmexport failed: {type(error).__name__}: {error}") from error


def _llmexport() -> ModuleType:
    """Import llmexport's main module, which finds the ones beside it only with their folder on the path."""
    spec = importlib.util.find_spec("llmexport")
    folder = str(Path(spec.origin or "").parent) if spec else ""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("llmexport")


@contextlib.contextmanager
def _native_converter_only() -> Iterator[None]:
    """Put a module in the place of the wheel's converter script."""
    import_native("_mnncengine")  # the package MNN, which the stand-in is in, wants it
    package, script = ModuleType("MNN.tools"), ModuleType("MNN.tools.mnnconvert")
    script.main = lambda: import_native("_tools").mnnconvert(sys.argv)  # type: ignore[attr-defined]
    package.mnnconvert = script  # type: ignore[attr-defined]
    stubs = {package.__name__: package, script.__name__: script}
    arguments = sys.argv  # llmexport overwrites them
    sys.modules.update(stubs)
    try:
        yield
    finally:
        sys.argv = arguments
        for name in stubs:
            del sys.modules[name]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
