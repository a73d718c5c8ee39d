"""The cache of converted models: where their folders are, what tells them apart, whether they are whole.

    <root>/models/<name>/<key>/      one converted model and its manifest.json
    <root>/models/<name>/.staging-*  work in progress, only ever under the lock
    <root>/locks/<name>.lock

Two entries with the same key give the same converted model. The manifest is written last and the folder is
renamed into place, so that a folder with a manifest was once whole.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from as2d_cli.domain.errors import ModelError
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import PathSource, is_plain_name
from as2d_cli.system.atomic_files import sha256_of, write_whole
from as2d_cli.system.json_files import read_json
from as2d_cli.system.paths import cache_root

MANIFEST = "manifest.json"
STAGING = ".staging-"
"""Start of the names of folders with work in progress."""

_KEY_DIGITS = 12  # 48 bits: folders of one model only need to differ from each other


@dataclass(frozen=True, slots=True)
class _File:
    """What a manifest says of a file."""

    size: int
    sha256: str
    time_ns: int | None = None
    """When it was changed last, in nanoseconds; manifests of old do not say."""


def model_folder(name: str) -> Path:
    """Return the folder that holds all conversions of the model `name`."""
    return cache_root() / "models" / name


def converted_folder(entry: ModelEntry, converter_version: str, runtimes: Mapping[str, str]) -> Path:
    """Return the folder of the model as this version of its converter makes it, present or not.

    The key covers the source, its digests, the options, the converter and the versions of the `runtimes`, by
    name. Raises `ModelError` if the files of a `path` source are missing: their size and time stand in for
    digests.
    """
    parts = {
        **{name.lower(): version for name, version in runtimes.items()},
        "source": {"kind": entry.source.kind, **asdict(entry.source)},
        "stamps": _stamps(entry.source) if isinstance(entry.source, PathSource) else None,
        "sha256": dict(entry.sha256),
        "options": dict(entry.options),
        "plugin": entry.plugin,
        "converter": converter_version,
    }
    text = json.dumps(parts, sort_keys=True, default=str)
    return model_folder(entry.name) / hashlib.sha256(text.encode()).hexdigest()[:_KEY_DIGITS]


def is_whole(folder: Path) -> bool:
    """Whether all files of the manifest are there, and hold what they did.

    Digests are computed only where the time of change is not the manifest's: whatever writes into a file
    changes that. Of a file that was merely copied or touched the new time is then kept.
    """
    files = _read_manifest(folder)
    if files is None:
        return False
    doubtful = [name for name, one in files.items() if _stamp(folder / name) != (one.size, one.time_ns)]
    if not all(_holds(folder / name, files[name]) for name in doubtful):
        return False
    if doubtful:
        with suppress(OSError):  # what cannot be written is looked through every time
            _write_manifest(folder, files)
    return True


def damaged_files(folder: Path) -> list[str]:
    """Return the names of files in `folder` that are not as the manifest says; digests are computed."""
    files = _read_manifest(folder)
    if files is None:
        return [MANIFEST]
    return [name for name, one in files.items() if not _holds(folder / name, one)]


def write_manifest(folder: Path) -> None:
    """Write the manifest of a finished conversion; the last thing that is written into `folder`."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {
        path.relative_to(folder).as_posix(): _File(path.stat().st_size, sha256_of(path)) for path in paths
    }
    _write_manifest(folder, files)


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
        raise ModelError(f"{folder}: cannot be deleted: {error.strerror or error}") from error


def _write_manifest(folder: Path, files: Mapping[str, _File]) -> None:
    """Write a manifest with the times that the files have now, whole or not at all. Raises `OSError`."""
    timed = {name: replace(one, time_ns=(folder / name).stat().st_mtime_ns) for name, one in files.items()}
    text = json.dumps({"schema": 1, "files": {name: asdict(one) for name, one in timed.items()}}, indent=1)
    write_whole(folder / MANIFEST, text.encode())


def _read_manifest(folder: Path) -> dict[str, _File] | None:
    """Return what is known of each file by its name, or None for a manifest that is missing or broken."""
    try:
        listed = read_json(folder / MANIFEST)["files"]
        files = {
            str(name): _File(int(one["size"]), str(one["sha256"]), one.get("time_ns"))
            for name, one in listed.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None
    return files if all(map(is_plain_name, files)) else None


def _stamps(source: PathSource) -> list[tuple[str, int, int]]:
    stamps = []
    for name in source.files:
        try:
            status = (source.directory / name).stat()
        except OSError as error:
            raise ModelError(
                f"{source.directory / name}: {error.strerror or error}",
                "check directory and files in your models.toml",
            ) from error
        stamps.append((name, status.st_size, status.st_mtime_ns))
    return stamps


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return size and time of the last change of a file that is there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _holds(path: Path, known: _File) -> bool:
    """Tell whether a file has the content that is known of it."""
    try:
        return path.stat().st_size == known.size and sha256_of(path) == known.sha256
    except OSError:
        return False


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
