"""What a shell offers for the value of an option. Imports wait until a shell asks."""

from __future__ import annotations

from collections.abc import Iterable


def models(incomplete: str) -> list[str]:
    """Return the names of targets that begin so."""
    from as2d_cli.models.registry import load_registry

    return _beginning(incomplete, (one.name for one in load_registry().models.values() if one.fits("target")))


def drafters(incomplete: str) -> list[str]:
    """Return the names of drafters that begin so."""
    from as2d_cli.models.registry import NO_DRAFTER, load_registry

    models = load_registry().models.values()
    return _beginning(incomplete, [*(one.name for one in models if one.fits("drafter")), NO_DRAFTER])


def languages(incomplete: str) -> list[str]:
    """Return the codes and names of languages that begin so."""
    from as2d_cli.domain.languages import AUTO, EACH_WINDOW, LANGUAGES

    return _beginning(incomplete, [AUTO, EACH_WINDOW, *LANGUAGES, *LANGUAGES.values()])


def written_languages(incomplete: str) -> list[str]:
    """Return the codes and names of languages to translate to that begin so."""
    from as2d_cli.domain.languages import LANGUAGES

    return _beginning(incomplete, [*LANGUAGES, *LANGUAGES.values()])


def formats(incomplete: str) -> list[str]:
    """Return lists of formats that begin so: what is there already, and one more."""
    from as2d_cli.transcripts.formats import FORMATS

    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in _beginning(last, FORMATS)]


def _beginning(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]
