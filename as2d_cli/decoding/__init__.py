"""The decoding core: draft streams, alignment, control of candidates and the verify loop.

It knows no model, no terminal and no file: all of it is numpy and plain Python. It may import `domain` only.
"""

from as2d_cli.decoding.align import Aligner, AlignMode
from as2d_cli.decoding.controller import Controller, FixedBudget, Hazard, Policy, StepCosts
from as2d_cli.decoding.drafting import write_draft
from as2d_cli.decoding.loop import Alignment, decode
from as2d_cli.decoding.passages import PRIOR, PassageAligner
from as2d_cli.decoding.protocols import END, DraftToken
from as2d_cli.decoding.retokenize import Retokenizer
from as2d_cli.decoding.stream import EMPTY, DraftReader, DraftState, DraftStream, finished_draft

__all__ = [
    "EMPTY",
    "END",
    "PRIOR",
    "AlignMode",
    "Aligner",
    "Alignment",
    "Controller",
    "DraftReader",
    "DraftState",
    "DraftStream",
    "DraftToken",
    "FixedBudget",
    "Hazard",
    "PassageAligner",
    "Policy",
    "Retokenizer",
    "StepCosts",
    "decode",
    "finished_draft",
    "write_draft",
]
