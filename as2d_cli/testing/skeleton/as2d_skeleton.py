"""The plugin `skeleton` of as2d: a drafter that writes the same words for every window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from as2d_cli.plugin import (
    END,
    ByteTokenizer,
    DrafterSpec,
    DraftToken,
    Features,
    FeatureSpec,
    ModelEntry,
    Request,
    hookimpl,
)

CONVERTER_VERSION = "1"
"""Raise it when what `as2d_convert` writes changes, so that older files are made anew."""


class SkeletonDrafter:
    """Writes a fixed text."""

    spec = DrafterSpec(FeatureSpec(n_mels=80, n_frames=3000), languages=None)
    tokenizer = ByteTokenizer()

    def draft(self, features: Features, request: Request) -> Iterator[DraftToken]:
        """Yield the draft of one window; `features` has the shape (n_mels, n_frames) of `spec`."""
        for token in self.tokenizer.encode(" Hello, world."):
            yield DraftToken(token)
        yield DraftToken(END)


@hookimpl
def as2d_convert(entry: ModelEntry, source: Path, destination: Path) -> bool:
    """Make what `as2d_load_drafter` loads of the files in `source`, once; here there is nothing to do."""
    return True


@hookimpl
def as2d_load_drafter(entry: ModelEntry, path: Path) -> SkeletonDrafter:
    """Load what `as2d_convert` has put into `path`."""
    return SkeletonDrafter()
