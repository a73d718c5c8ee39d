import sys

import pytest

from as2d_cli.cli.output.confidence import colour, write_coloured
from as2d_cli.domain.types import Segment, Transcript, Word

WORDS = (Word(" It", 0.0, 0.1, 0.99), Word(" [isn't]", 0.1, 0.2, 0.3), Word(" it", 0.2, 0.3))
SAID = Transcript(" It [isn't] it", (Segment(0.0, 0.3, "It [isn't] it", WORDS),), "en", 1.0, "t", None)


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_words_have_the_colours_of_their_probabilities_on_a_terminal(terminal):
    assert write_coloured(SAID) == "\x1b[38;5;82mIt\x1b[0m \x1b[38;5;196m[isn't]\x1b[0m it\n"


def test_nothing_is_coloured_where_no_colour_is_wanted(terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert write_coloured(SAID) == "It [isn't] it\n"


def test_nothing_is_coloured_where_stdout_is_no_terminal():
    assert write_coloured(SAID) == "It [isn't] it\n"


def test_a_long_text_stays_on_one_line(terminal):
    long = Transcript("word " * 100, (), "en", 1.0, "t", None)
    assert write_coloured(long) == "word " * 99 + "word\n"


def test_colours_go_from_red_to_green():
    assert colour(0.0) == 196
    assert colour(1.0) == 82
