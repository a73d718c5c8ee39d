"""A target and a drafter without a model: they read a script. For tests, demonstrations and as a template.

Everything is a pure function of the options and the features, and the target checks every call, so
a mistake in a caller shows as an error or as a different text, never as luck.
"""

from as2d_cli.decoding.stream import finished_draft
from as2d_cli.decoding.virtual import PacedReader, VirtualClock
from as2d_cli.testing.session import ScriptedSession
from as2d_scripted.draft_session import ScriptedDraftSession
from as2d_scripted.drafter import ScriptedDrafter
from as2d_scripted.inner import ScriptedInnerDrafter
from as2d_scripted.process import draft_into
from as2d_scripted.script import Script
from as2d_scripted.target import ScriptedTarget
from as2d_scripted.tokenizer import ScriptedTokenizer

__all__ = [
    "PacedReader",
    "Script",
    "ScriptedDraftSession",
    "ScriptedDrafter",
    "ScriptedInnerDrafter",
    "ScriptedSession",
    "ScriptedTarget",
    "ScriptedTokenizer",
    "VirtualClock",
    "draft_into",
    "finished_draft",
]
