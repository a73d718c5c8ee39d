"""How many engines share the windows of a run: one on all threads, or several on fewer threads each.

Two engines on a thread each wait for nothing, where the threads of one wait for the slowest of them. So
they are faster once there is enough to do for all; loading them takes longer.
"""

from __future__ import annotations

from pathlib import Path

ENOUGH = 4
"""Windows for each engine from which on another one pays (docs/decisions/0019-side-by-side.md)."""
SAVING = 0.12
"""Share of the time that engines side by side save on two cores: drafts that save more are preferred."""
_WORKSPACE_BYTES = 250_000_000
_COPIES = 2.0
"""Memory that an engine takes: what its process needs anyhow, and this many times its files."""


def engines_for(windows: int, threads: int, model: Path, free_bytes: int | None) -> int:
    """Return how many engines to load for at least so many windows, on so many threads in all.

    `free_bytes` is the memory that all may take, None if it is not known.
    """
    most = min(threads, windows // ENOUGH)
    if free_bytes is not None:
        size = sum(file.stat().st_size for file in model.iterdir() if file.is_file())
        most = min(most, int(free_bytes // (_WORKSPACE_BYTES + _COPIES * size)))
    return max(1, most)
