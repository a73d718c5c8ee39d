import re
from html.parser import HTMLParser

import pytest

from as2d_cli.bench.report.page import page
from as2d_cli.bench.report.plots import shown_trials, shown_window
from as2d_cli.bench.report.svg import Scale, element, ticks
from as2d_cli.bench.trials import TrialStep

_VOID = {"meta"}


class Outline(HTMLParser):
    """Checks that elements nest and collects what is in which section."""

    def __init__(self):
        super().__init__()
        self.open, self.sections, self.tags, self.links, self.words = [], {}, [], [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        self.links += [value for name, value in attributes.items() if name in {"src", "href"}]
        if tag == "section":
            self.sections[attributes["id"]] = []
        if tag not in _VOID:
            self.open.append(tag)
        for name in self.sections if "section" in self.open else ():
            self.sections[name] += [tag] if name == list(self.sections)[-1] else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture
def outline(results):
    parser = Outline()
    parser.feed(page(results))
    parser.close()
    assert parser.open == []
    return parser


def test_the_page_has_three_plots_with_something_in_them(outline):
    assert list(outline.sections) == ["speedups", "lanes", "staircase"]
    assert outline.sections["speedups"].count("circle") == 2
    assert outline.sections["lanes"].count("rect") >= 1 + 3 + 1 + 2 + 1
    assert outline.sections["staircase"].count("polyline") == 2
    assert outline.tags.count("table") == 4


def test_the_page_needs_nothing_from_elsewhere(outline, results):
    assert outline.links == []
    assert "script" not in outline.tags
    markup = page(results).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert re.search(r"https?:|url\(|@import", markup) is None


def test_the_page_is_readable_in_light_and_dark(results):
    markup = page(results)
    assert "prefers-color-scheme: dark" in markup
    used = set(re.findall(r"var\((--\w+)\)", markup))
    assert used
    for scheme in markup.split("@media")[:2]:
        assert used <= set(re.findall(r"(--\w+):", scheme))


def test_what_the_run_says_is_text_and_never_markup(outline):
    assert "a <note>" in outline.words
    assert "command: as2d bench <clips>" in outline.words


def test_a_different_text_stands_at_the_top(results, make_trial):
    results.trials.append(make_trial("sd-2 hearer", tokens=(1,)))
    markup = page(results)
    assert markup.index("Different text: sd-2 hearer") < markup.index("<table>")


def test_a_run_without_drafts_has_a_page_too(results):
    results.trials = [trial for trial in results.trials if trial.kind == "plain"]
    results.staircases = []
    parser = Outline()
    parser.feed(page(results))
    assert "no window was drafted" in parser.words
    assert "nothing was measured" in parser.words


def test_the_last_repeat_of_the_automatic_mode_is_shown_else_the_fastest(make_trial):
    trials = [make_trial(), make_trial("as2d-4", wall_s=0.9), make_trial("as2d-7", wall_s=0.5)]
    trials.append(make_trial("as2d-7", wall_s=0.6, repeat=1))
    trials.append(make_trial("as2d-23-alone", wall_s=0.1, alone=True))
    assert [(trial.mode, trial.repeat) for trial in shown_trials(trials)] == [("as2d-7", 1)]
    trials.append(make_trial("as2d-auto hearer", wall_s=2.0))
    assert [trial.mode for trial in shown_trials(trials)] == ["as2d-auto hearer"]


def test_a_window_whose_draft_came_while_it_was_decoded_is_preferred(make_trial):
    ahead = make_trial("as2d-7", window=0, tokens=(1,) * 9, published_ms=(-5.0,))
    live = make_trial("as2d-7", window=1, tokens=(1,) * 5, published_ms=(-5.0, 5.0))
    assert shown_window([make_trial(), make_trial(window=1), ahead, live]) is live
    assert shown_window([make_trial(), ahead]) is ahead
    assert shown_window([make_trial()]) is None


def test_steps_are_coloured_by_what_became_of_their_drafts(results, make_trial):
    steps = (
        TrialStep(1, 0, 0, 0, 500.0, 5.0),
        TrialStep(1, 2, 0, 2, 510.0, 5.0),
        TrialStep(3, 2, 2, 2, 520.0, 5.0),
    )
    results.trials = [make_trial(), make_trial("as2d-7", steps=steps)]
    markup = page(results)
    assert [markup.count(f'class="step{kind}"') for kind in (" miss", " hit")] == [1, 1]


def test_markup_in_attributes_is_escaped():
    assert element("a", "b", title='"<') == '<a title="&quot;&lt;">b</a>'


def test_scales_and_ticks():
    scale = Scale(1, 4, 0, 100, logarithmic=True)
    assert (scale(1), scale(2), scale(4), scale(9)) == pytest.approx((0, 50, 100, 100))
    assert ticks(-30, 100, 7) == [-20.0, 0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    assert ticks(5, 5) == [5.0]
