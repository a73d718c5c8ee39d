"""Makes text from outside fit for a terminal: file names in messages, and what models write.

Terminals obey control characters (ECMA-48; OSC 52 fills the clipboard), the eight-bit ones of C1 included.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from as2d_cli.domain.errors import visible
from as2d_cli.system.addresses import shown

_OVERRIDES: Final = "\u202d\u202e"
"""They turn the order of the letters after them, which no speech needs (Unicode UAX 9, "Trojan Source")."""
_UNSPOKEN: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_OVERRIDES}]")


def printable(name: str | Path) -> str:
    """Return the name of a file fit for one line: no control characters, broken encodings or secrets."""
    return visible(shown(name))


def spoken(text: str) -> str:
    r"""Return what a model wrote without control characters, but for tabs and newlines, and overrides.

    >>> spoken("a\x1b[31mb\n\x9bc")
    'a[31mb\nc'
    """
    return _UNSPOKEN.sub("", text)
