"""The decoding core: draft streams, alignment, budget control and the verify loop.

It knows no model, no terminal and no file; everything here is numpy and plain Python.
"""

from as2d_cli.bench.baselines.coupled import Coupling
from as2d_cli.bench.baselines.following import Channel, FollowedDraft, Follower
from as2d_cli.bench.baselines.serial import SERIAL_MODES, WHOLE_DRAFT, SerialDraft, serial_draft
from as2d_cli.decoding.align import Aligner, AlignMode
from as2d_cli.decoding.controller import Controller, FixedBudget, Hazard, Policy, StepCosts
from as2d_cli.decoding.drafting import fill
from as2d_cli.decoding.loop import Alignment, decode
from as2d_cli.decoding.passages import LUCK, PassageFinder
from as2d_cli.decoding.protocols import END, DraftToken
from as2d_cli.decoding.retokenize import Retokenizer
from as2d_cli.decoding.stream import EMPTY, DraftReader, DraftState, DraftStream, finished_draft

__all__ = [
    "EMPTY",
    "END",
    "LUCK",
    "SERIAL_MODES",
    "WHOLE_DRAFT",
    "AlignMode",
    "Aligner",
    "Alignment",
    "Channel",
    "Controller",
    "Coupling",
    "DraftReader",
    "DraftState",
    "DraftStream",
    "DraftToken",
    "FixedBudget",
    "FollowedDraft",
    "Follower",
    "Hazard",
    "PassageFinder",
    "Policy",
    "Retokenizer",
    "SerialDraft",
    "StepCosts",
    "decode",
    "fill",
    "finished_draft",
    "serial_draft",
]
