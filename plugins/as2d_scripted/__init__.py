"""A target and a drafter without a model: they read a script. For tests, demonstrations and as a template.

Everything is a pure function of the options and the features, and the target checks every call, so
a mistake in a caller shows as an error or as a different text, never as luck.
"""

from as2d_scripted.draft_session import ScriptedDraftSession
from as2d_scripted.drafter import ScriptedDrafter
from as2d_scripted.inner import ScriptedInnerDrafter
from as2d_scripted.script import Script
from as2d_scripted.target import ScriptedTarget
from as2d_scripted.tokenizer import ScriptedTokenizer

__all__ = [
    "Script",
    "ScriptedDraftSession",
    "ScriptedDrafter",
    "ScriptedInnerDrafter",
    "ScriptedTarget",
    "ScriptedTokenizer",
]
