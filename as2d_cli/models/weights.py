"""Returns the folder of a converted model; on first use fetches and converts it.

A model in the cache is used without network and without lock. Otherwise one process per model works under a
lock, in a staging folder that is renamed into place when it is complete; a half-made model is never used.
`cache` knows the folders, `fetch` downloads, the hooks of `loader` convert.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from as2d_cli.domain.errors import ModelError
from as2d_cli.models import cache, loader
from as2d_cli.models.apart import run_apart
from as2d_cli.models.fetch import Progress, fetch, silent
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import NoSource
from as2d_cli.system.paths import cache_root


def ensure(entry: ModelEntry, progress: Progress = silent) -> Path:
    """Return the folder of the converted model, making it first where it is not in the cache.

    Raises `ModelError` if it cannot be fetched, verified, converted or stored, `PluginError` if its plugin
    is missing or does not convert it.
    """
    folder = _folder(entry)
    if not cache.is_whole(folder):
        try:
            with _lock(entry.name, progress):
                if not cache.is_whole(folder):  # another process may have made it meanwhile
                    _make(entry, folder, progress)
        except OSError as error:
            where = error.filename or cache_root()
            raise ModelError(
                f"model {entry.name!r} cannot be stored: {where}: {error.strerror or error}",
                "free space there, or set AS2D_CACHE_DIR to another folder",
            ) from error
    return folder


def find(entry: ModelEntry) -> Path | None:
    """Return the folder of the converted model if it is in the cache."""
    folder = _folder(entry)
    return folder if cache.is_whole(folder) else None


def identity(entry: ModelEntry) -> str:
    """Return what tells the model, as it is loaded, apart from every other one, in the cache or not."""
    return as_loaded(entry, _folder(entry))


def as_loaded(entry: ModelEntry, folder: Path) -> str:
    """Return what tells the model that is loaded from `folder` apart from every other one."""
    loading = [f",{name}={value}" for name, value in loader.loading_options(entry).items()]
    return "".join([f"{entry.name}/{folder.name}", *loading])


def remove(name: str, progress: Progress = silent) -> bool:
    """Delete everything stored for the model `name`; False if there was nothing. Raises `ModelError`."""
    if name not in cache.stored_models():
        return False
    try:
        with _lock(name, progress):
            cache.discard(cache.model_folder(name))
    except OSError as error:
        raise ModelError(
            f"model {name!r} cannot be removed: {error.filename}: {error.strerror or error}"
        ) from error
    return True


def _folder(entry: ModelEntry) -> Path:
    entry = loader.settled(entry)
    loading = loader.loading_options(entry)
    converting = {name: value for name, value in entry.options.items() if name not in loading}
    version, runtimes = loader.converter_version(entry.plugin), loader.runtime_versions(entry.plugin)
    return cache.converted_folder(replace(entry, options=converting), version, runtimes)


@contextmanager
def _lock(name: str, progress: Progress) -> Iterator[None]:
    """Hold the lock of the model `name`, which ends with its process however that ends."""
    import filelock  # not at the top: not needed for a model that is in the cache

    path = cache_root() / "locks" / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        progress(f"waiting for another process that works on {name}", 0, None)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _make(entry: ModelEntry, folder: Path, progress: Progress) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    for stale in folder.parent.glob(f"{cache.STAGING}*"):  # left by a process that was killed
        shutil.rmtree(stale, ignore_errors=True)
    # A name of its own: the conversion of a killed process may live on for a moment and write into its own.
    staging = Path(tempfile.mkdtemp(prefix=cache.STAGING, dir=folder.parent))
    try:
        (staging / "source").mkdir()
        (staging / "model").mkdir()
        _check_room(entry)
        loader.check_memory(entry.name, entry.making_memory_mb, "while it is converted")
        source = fetch(entry, staging / "source", progress, partial(loader.check, entry))
        progress(f"converting {entry.name}", 0, None)
        _convert(entry, source, staging)
        cache.write_manifest(staging / "model")
        cache.discard(folder)  # there, but not whole
        (staging / "model").rename(folder)
    finally:
        cache.discard(staging)


def _check_room(entry: ModelEntry) -> None:
    """Look for room for what is downloaded and what is made of it. Raises `ModelError`."""
    needed, free = 2 * entry.download_mb, shutil.disk_usage(cache_root()).free // 1_000_000
    if free < needed:
        raise ModelError(
            f"model {entry.name!r} needs {needed / 1e3:.1f} GB while it is made; {free / 1e3:.1f} GB are free"
            f" in {cache_root()}",
            "free space there, or set AS2D_CACHE_DIR to another folder",
        )


def _convert(entry: ModelEntry, source: Path, staging: Path) -> None:
    """Convert in a process of its own. Raises `ModelError`, or `PluginError` for a plugin that does not."""
    try:
        run_apart(f"convert {entry.name}", loader.convert, entry, source, staging / "model")
    except ChildProcessError as error:
        raise ModelError(f"model {entry.name!r}: conversion failed: {error}") from error
    if not any((staging / "model").iterdir()) and not isinstance(entry.source, NoSource):
        raise ModelError(f"model {entry.name!r}: plugin {entry.plugin!r} converted it into nothing")
