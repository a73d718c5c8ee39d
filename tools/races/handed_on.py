"""Command lines that end in options of as2d, behind `--`."""

from __future__ import annotations

import argparse
import sys


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the command line; what stands behind `--` becomes `options`."""
    own, options = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, options = own[:at], own[at + 1 :]
    arguments = parser.parse_args(own)
    arguments.options = options
    return arguments
