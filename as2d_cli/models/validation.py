"""Validates the facts that a plugin states about a model: each field against its declared type.

Facts cross processes and decide about slots and requests, so an odd one must be reported where its plugin
is still known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass
from numbers import Integral
from types import NoneType
from typing import get_args, get_type_hints

from as2d_cli.decoding.protocols import DrafterSpec, TargetSpec


def spec_flaw(spec: object, kind: type[DrafterSpec] | type[TargetSpec]) -> str | None:
    """Return what is odd about the facts that should be of this kind, None if they can be gone by."""
    if type(spec) is not kind:  # not isinstance: the main process may not know a plugin's own class
        return f"its spec is a {type(spec).__name__}, not a {kind.__name__}"
    for name, value, hint in _fields(spec, kind):
        if not _fits(value, hint):
            return f"its {kind.__name__} has an odd {name}: {value!r}"
    if isinstance(spec, TargetSpec) and spec.end_id >= spec.vocab_size:
        return f"its end_id {spec.end_id} is none of {spec.vocab_size} ids"
    return None


def _fields(value: object, kind: type) -> list[tuple[str, object, object]]:
    """Return name, value and declared type of each field."""
    return [(name, getattr(value, name), hint) for name, hint in get_type_hints(kind).items()]


def _fits(value: object, hint: object) -> bool:
    """Tell whether a value is of a declared type: of a dataclass, a number from 0, yes or no, or texts."""
    if isinstance(hint, type) and is_dataclass(hint):
        return type(value) is hint and all(_fits(inner, of) for _, inner, of in _fields(value, hint))
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0
    if hint is bool:
        return isinstance(value, bool)
    if value is None:
        return NoneType in get_args(hint)
    return isinstance(value, Sequence) and not isinstance(value, str) and all(map(_is_text, value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)
