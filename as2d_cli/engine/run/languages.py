"""The rule for the language of a file, where it is not told: the first window that tells one decides."""

from __future__ import annotations

from collections.abc import Iterable

from as2d_cli.domain.types import Request
from as2d_cli.engine.run.tasks import WindowTask, Work


class FileLanguages:
    """The language of each file, once it is known.

    Later windows need not wait for it: they are decoded with the language left open, as a target then does
    what it would do if asked for the one that it detects. What turns out to be in another language is
    decoded again. So a text does not depend on which window was finished first.
    """

    def __init__(self) -> None:
        self._found: dict[int, str] = {}

    def request(self, task: WindowTask) -> Request:
        """Return what is to be asked for a window, in the language of its file if that is known."""
        return task.request.in_language(task.request.language or self._found.get(task.group))

    def foreign(self, group: int, works: Iterable[Work]) -> list[Work]:
        """Return what is to be decoded again, of the windows of a file that are not yet yielded, in order.

        Decides on the file's language as soon as all windows up to one that tells it are decoded.
        """
        own = [work for work in works if work.task.group == group]
        if group not in self._found:
            first = next((work for work in own if work.outcome is None or _told(work)), None)
            if first is None or not _told(first):
                return []
            self._found[group] = _told(first)
        return [work for work in own if work.is_open and _told(work) not in ("", self._found[group])]


def _told(work: Work) -> str:
    """Return the language that a window was decoded in, empty while that is not known or not told."""
    result = work.outcome.result if work.outcome else None
    return (result and result.language) or ""
