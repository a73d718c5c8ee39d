"""Options of Whisper models that can be chosen for a run."""

from __future__ import annotations

from typing import Literal, get_args

from as2d_cli.plugin import ModelOption

BackendName = Literal["mnn", "openvino"]
BACKEND = ModelOption(
    choices=("auto", *get_args(BackendName)),
    help="The engine the model runs on: openvino on x86 processors with VNNI, mnn elsewhere.",
    refusal="runs on one engine only",
)
Context = Literal["full", "fitted"]
CONTEXT = ModelOption(
    choices=get_args(Context),
    help="How much of a window the model takes in: always 30 s, or as much as there is audio, which is"
    " faster on short files but not always the same text.",
    refusal="has only one context",
)
