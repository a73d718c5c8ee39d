"""The folders of converted models: where they lie, what tells them apart, whether they are whole.

    <root>/models/<name>/<key>/      one converted model and its manifest.json
    <root>/models/<name>/.staging-*  work in progress, only ever under the lock
    <root>/locks/<name>.lock

Two entries with the same key give the same converted model. The manifest is written last and the folder
is renamed into place, so that a folder with a manifest was once whole.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

from as2d_cli.errors import ModelError
from as2d_cli.model_sources import PathSource, is_plain_name
from as2d_cli.paths import cache_root
from as2d_cli.registry import ModelEntry

MANIFEST = "manifest.json"
STAGING = ".staging-"
"""Start of the names of folders with work in progress."""

_KEY_DIGITS = 12  # 48 bits: folders of one model only need to differ from each other
_CHUNK_BYTES = 1 << 20


def model_folder(name: str) -> Path:
    """Return the folder that holds all conversions of the model `name`."""
    return cache_root() / "models" / name


def converted_folder(entry: ModelEntry, converter_version: str) -> Path:
    """Return the folder of the model as this version of its converter makes it, present or not.

    The key covers the source, its digests, the options, the converter and MNN. Raises `ModelError` if the
    files of a `path` source are missing: their size and time stand in for digests.
    """
    parts = {
        "source": {"kind": entry.source.kind, **asdict(entry.source)},
        "stamps": _stamps(entry.source) if isinstance(entry.source, PathSource) else None,
        "sha256": dict(entry.sha256),
        "options": dict(entry.options),
        "plugin": entry.plugin,
        "converter": converter_version,
        "mnn": _mnn_version(),
    }
    text = json.dumps(parts, sort_keys=True, default=str)
    return model_folder(entry.name) / hashlib.sha256(text.encode()).hexdigest()[:_KEY_DIGITS]


def is_whole(folder: Path) -> bool:
    """Whether all files of the manifest are there in their full size; digests are not computed."""
    files = _read_manifest(folder)
    return files is not None and all(_size(folder / name) == size for name, (size, _) in files.items())


def damaged_files(folder: Path) -> list[str]:
    """Return the names of files in `folder` that are not as the manifest says; digests are computed."""
    files = _read_manifest(folder)
    if files is None:
        return [MANIFEST]
    return [
        name
        for name, (size, digest) in files.items()
        if _size(folder / name) != size or sha256_of(folder / name) != digest
    ]


def write_manifest(folder: Path, model: str) -> None:
    """Write the manifest of a finished conversion; the last thing that is written into `folder`."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    files = {name: {"size": _size(folder / name), "sha256": sha256_of(folder / name)} for name in names}
    text = json.dumps({"schema": 1, "model": model, "files": files}, indent=1)
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def stored_models() -> list[str]:
    """Return the names of the models that have a folder in the cache, whole or not."""
    folder = cache_root() / "models"
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def stored_conversions(name: str) -> list[Path]:
    """Return the folders of finished conversions of the model `name`."""
    folder = model_folder(name)
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(STAGING))


def stored_bytes(name: str) -> int:
    """Return the size of everything stored for the model `name`."""
    return sum(_size(path) or 0 for path in model_folder(name).rglob("*") if path.is_file())


def discard(folder: Path) -> None:
    """Delete `folder` with all in it, if it is there. Raises `ModelError` if that is not possible."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ModelError(f"{folder}: cannot be deleted: {error.strerror}") from error


def sha256_of(path: Path, progress: Callable[[int], None] | None = None) -> str:
    """Return the hex digest of a file, telling `progress` now and then how many bytes are done."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            if progress:
                progress(file.tell())
    return digest.hexdigest()


def _read_manifest(folder: Path) -> dict[str, tuple[int, str]] | None:
    """Return size in bytes and digest by file name, or None for a manifest that is missing or broken."""
    try:
        listed = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        files = {str(name): (int(one["size"]), str(one["sha256"])) for name, one in listed.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return files if all(map(is_plain_name, files)) else None


def _stamps(source: PathSource) -> list[tuple[str, int, int]]:
    stamps = []
    for name in source.files:
        try:
            status = (source.directory / name).stat()
        except OSError as error:
            raise ModelError(
                f"{source.directory / name}: {error.strerror}",
                "check directory and files in your models.toml",
            ) from error
        stamps.append((name, status.st_size, status.st_mtime_ns))
    return stamps


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _mnn_version() -> str:
    try:
        return metadata.version("MNN")
    except metadata.PackageNotFoundError:
        return "none"
