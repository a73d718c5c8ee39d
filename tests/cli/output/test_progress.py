"""What the bar counts, and how it looks."""

import io
import re
import time
from pathlib import Path

from rich.console import Console

from as2d_cli.cli.output.progress import Bar, Tally
from as2d_cli.engine.messages import Progress

A, B = Path("a"), Path("b")


def test_lengths_are_estimates_until_a_file_is_finished():
    tally = Tally([A, B])
    assert (tally.current, tally.total_s()) == (A, 0)
    tally.expect(A, 60)
    tally.expect(B, 40)
    tally.window(A, 30)
    assert (tally.heard_s(), tally.total_s()) == (30, 100)
    tally.file(A)  # it was half as long as it claimed
    assert (tally.current, tally.total_s()) == (B, 70)
    tally.window(B, 45)  # longer than it claimed
    assert tally.total_s(B) == 45
    tally.file(B)
    assert (tally.current, tally.heard_s(), tally.total_s()) == (None, 75, 75)


def test_thousands_of_files_take_no_time_to_count():
    sources = [Path(f"{number}.wav") for number in range(8_000)]
    tally, began = Tally(sources), time.process_time()
    for source in sources:
        tally.expect(source, 1.0)
        assert tally.total_s() > tally.heard_s()
    assert time.process_time() - began < 2  # 0.05 s; 18 s, if sums are made anew


def test_names_are_shown_as_they_are_and_the_bar_gives_way(sound):
    terminal = io.StringIO()
    path = sound("[red]x[bold].wav", 3)
    bar = Bar([path], Console(file=terminal, force_terminal=True, width=100))
    bar.steps(Progress(1, 30, 10))
    bar.window(path, 3)
    with bar.hidden():
        terminal.write("HERE")
    bar.file(path)
    bar.stop()
    assert "[red]x[bold].wav" in terminal.getvalue()
    assert "3.0 tokens per step" in terminal.getvalue()
    assert "HERE" in terminal.getvalue()


def test_the_bar_moves_while_nothing_is_heard_of_the_models(sound):
    terminal = io.StringIO()
    bar = Bar([sound("a.wav", 3)], Console(file=terminal, force_terminal=True, width=100))

    def seen():
        return re.sub("\x1b\\[[0-9;]*m", "", terminal.getvalue())

    end = time.monotonic() + 30
    while not all(f"{mark} 1/1 files" in seen() for mark in "-\\|/") and time.monotonic() < end:
        time.sleep(0.05)
    bar.stop()
    assert {mark for mark in "-\\|/" if f"{mark} 1/1 files" in seen()} == set("-\\|/")
    assert "0:03" in seen()


def test_figures_are_weighted_by_seconds_and_say_how_fast_and_how_long(sound):
    terminal = io.StringIO()
    long, short = sound("long.wav", 30), sound("short.wav", 10)
    bar = Bar([long, short], Console(file=terminal, force_terminal=True, width=100))
    time.sleep(0.3)
    bar.window(long, 30)
    bar.file(long)
    time.sleep(0.3)
    bar.stop()
    figures = re.search(r"2/2 files.* 0:30/0:40  (\d+\.\d)x  0:0\d left", terminal.getvalue())
    assert figures, terminal.getvalue()
    assert float(figures.group(1)) < 30 / 0.25
