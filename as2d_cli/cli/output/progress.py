"""The progress bar of a run: one row for all files by audio seconds, one for the file in work."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from as2d_cli.audio.stream import claimed_s
from as2d_cli.engine.messages import Progress
from as2d_cli.system.printable import printable
from as2d_cli.transcripts.formats import clock

_NAME_COLUMNS = 30


class Tally:
    """How far a run is, in audio seconds. Lengths are estimates until a file is finished.

    There may be tens of thousands of files, so sums are kept, not made anew.
    """

    def __init__(self, sources: Sequence[Path]) -> None:
        self.sources = tuple(sources)
        self.began = time.monotonic()
        self.finished = 0
        self._expected_s = dict.fromkeys(sources, 0.0)
        self._heard_s = dict.fromkeys(sources, 0.0)
        self._all_s = self._all_heard_s = 0.0
        self._lock = threading.Lock()

    @property
    def current(self) -> Path | None:
        """The file in work: files are finished in order."""
        return self.sources[self.finished] if self.finished < len(self.sources) else None

    def expect(self, source: Path, seconds: float) -> None:
        """Take the length that a file claims."""
        with self._counted(source):
            self._expected_s[source] = seconds

    def window(self, source: Path, seconds: float) -> None:
        """Take a finished window."""
        with self._counted(source):
            self._heard_s[source] += seconds

    def file(self, source: Path) -> None:
        """Take a finished file: its length is known now."""
        self.finished += 1
        with self._counted(source):
            self._expected_s[source] = self._heard_s[source]

    @contextmanager
    def _counted(self, source: Path) -> Iterator[None]:
        with self._lock:
            total_s, heard_s = self.total_s(source), self.heard_s(source)
            yield
            self._all_s += self.total_s(source) - total_s
            self._all_heard_s += self.heard_s(source) - heard_s

    def heard_s(self, source: Path | None = None) -> float:
        """Seconds done, of one file or of all."""
        return self._all_heard_s if source is None else self._heard_s[source]

    def total_s(self, source: Path | None = None) -> float:
        """Seconds there are, of one file or of all, as far as known."""
        return self._all_s if source is None else max(self._expected_s[source], self._heard_s[source])

    def rtfx(self) -> float:
        """Audio seconds done per wall second."""
        return self.heard_s() / max(time.monotonic() - self.began, 1e-3)


class _Figures(ProgressColumn):
    """Shows what the task's function says at the moment, so that it moves between two updates."""

    def render(self, task: Task) -> Text:
        return Text(task.fields["figures"]())


class Bar:
    """The bar on the terminal of stderr, from now until `stop`."""

    def __init__(self, sources: Sequence[Path], console: Console | None = None) -> None:
        self._tally = Tally(sources)
        self._steps = Progress(0, 0, 0)
        self._bars = Bars(
            SpinnerColumn("line"),  # turns by itself: a window may take its time
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            _Figures(),
            console=console or Console(stderr=True),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._all = self._bars.add_task("", total=None, figures=self._figures_of_all)
        self._one = self._bars.add_task("", total=None, figures=self._figures_of_one)
        self._stopping = threading.Event()
        self._prober = threading.Thread(target=self._probe, daemon=True)
        self._draw()
        self._bars.start()
        self._prober.start()

    def steps(self, progress: Progress) -> None:
        """Note how far the window in work is."""
        self._steps = progress

    def window(self, source: Path, seconds: float) -> None:
        """Take a finished window."""
        self._tally.window(source, seconds)
        self._draw()

    def file(self, source: Path) -> None:
        """Take a finished file."""
        self._tally.file(source)
        self._draw()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Clear the bar while something else is written to the terminal."""
        self._bars.stop()
        try:
            yield
        finally:
            self._bars.start()

    def stop(self) -> None:
        """Clear the bar for good."""
        self._stopping.set()
        self._bars.stop()
        self._prober.join()

    def _probe(self) -> None:
        """Ask all files for the length they claim, beside the work: there may be thousands."""
        for source in self._tally.sources:
            if self._stopping.is_set():
                return
            if source.is_file():  # a pipe can be read only once
                self._tally.expect(source, claimed_s(source))
            self._draw()

    def _draw(self) -> None:
        tally, current = self._tally, self._tally.current
        name = f"{min(tally.finished + 1, len(tally.sources))}/{len(tally.sources)} files"
        self._bars.update(
            self._all, description=name, completed=tally.heard_s(), total=tally.total_s() or None
        )
        if current is None:
            self._bars.update(self._one, visible=False)
            return
        self._bars.update(
            self._one,
            description=_short(printable(current.name)),
            completed=tally.heard_s(current),
            total=tally.total_s(current) or None,
        )

    def _figures_of_all(self) -> str:
        tally = self._tally
        heard_s, total_s, rtfx = tally.heard_s(), tally.total_s(), tally.rtfx()
        figures = f"{clock(heard_s)}/{clock(total_s)}"
        if heard_s:
            figures += f"  {rtfx:.1f}x  {clock((total_s - heard_s) / rtfx)} left"
        return figures

    def _figures_of_one(self) -> str:
        tokens, steps = self._steps.tokens, self._steps.steps
        return f"{tokens / steps:.1f} tokens per step" if tokens > steps else ""  # 1.0 is no news: no drafts


def _short(name: str) -> str:
    return name if len(name) <= _NAME_COLUMNS else name[: _NAME_COLUMNS - 1] + "…"
