"""Where numbers come from: everything that a reader needs to judge or to repeat them."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from as2d_cli.engine.messages import ModelRef
from as2d_cli.models import loader
from as2d_cli.models.discovery import list_plugins
from as2d_cli.system.device import device

_GIT_S = 5.0


def provenance(target: ModelRef, drafters: Sequence[ModelRef], command: str) -> dict[str, Any]:
    """Describe this program, this machine, these models and this moment."""
    used = sorted({model.entry.plugin for model in (target, *drafters)})
    return {
        "as2d": version("as2d"),
        "commit": commit(Path(__file__).parent),
        "plugins": {
            info.name: f"{info.package} {info.version}" for info in list_plugins() if info.name in used
        },
        "target": _described(target),
        "drafters": [_described(drafter) for drafter in drafters],
        "device": device(),
        "os": platform.platform(),
        "python": platform.python_version(),
        "runtimes": loader.runtime_versions(*used),
        "load": round(os.getloadavg()[0], 2),
        "utc": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": command,
    }


def _described(model: ModelRef) -> dict[str, Any]:
    return {
        "name": model.entry.name,
        "files": model.path.name,  # a digest of their sources and the options
        "options": dict(model.entry.options),
        "threads": model.threads,
    }


def commit(folder: Path) -> str | None:
    """Return the commit that the modules in `folder` come from, marked if files differ from it, else None."""
    if not _git(folder, "ls-files", "provenance.py"):  # an installed copy may lie in somebody else's checkout
        return None
    return _git(folder, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        found = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=_GIT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
