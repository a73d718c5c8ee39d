"""Random weights in the dimensions of a real Whisper, to measure what it costs before it is downloaded.

A model entry is a shape if its options say `kind = "shape"`; the others are its dimensions. Speed does not
depend on the values of weights, so all else is as with a real model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as BpeTokenizer
from tokenizers.models import BPE

from as2d_cli.plugin import BYTE_OF, ModelError, OptionValue
from as2d_whisper.checkpoint import Checkpoint, expected_arrays
from as2d_whisper.layout import HEAD_SIZE

_DIMENSIONS = {"width": 4096, "encoder_layers": 64, "decoder_layers": 64, "n_mels": 256, "vocab": 100_000}
"""Names of the options, and the most that each can be."""
_AUDIO_POSITIONS, _TEXT_POSITIONS = 1500, 448
_ALIGNMENT_HEADS = 8
"""Published models list 6 to 23."""
_END = 50257
"""Of multilingual Whispers, whose languages follow two ids on (openai/whisper `tokenizer.py`)."""
_TRANSLATE = 50358
_SPECIAL = {
    _END: "<|endoftext|>",
    _END + 1: "<|startoftranscript|>",
    _END + 2: "<|en|>",
    _TRANSLATE: "<|translate|>",
    _TRANSLATE + 1: "<|transcribe|>",
    _TRANSLATE + 3: "<|startofprev|>",
    _TRANSLATE + 5: "<|notimestamps|>",
}


def random_checkpoint(options: Mapping[str, OptionValue]) -> Checkpoint:
    """Return weights of the dimensions that the options name. Raises `ModelError` for impossible ones."""
    width, encoder_layers, decoder_layers, n_mels, vocab = (_dimension(options, name) for name in _DIMENSIONS)
    if width % HEAD_SIZE:
        raise ModelError(f"option width is {width}", f"heads have {HEAD_SIZE} values each")
    given = {
        "decoder/embeddings/weight": (vocab, width),
        "encoder/conv1/weight": (width, n_mels, 3),
        "encoder/position_encodings/encodings": (_AUDIO_POSITIONS, width),
        "decoder/position_encodings/encodings": (_TEXT_POSITIONS, width),
    }
    for part, layers in (("encoder", encoder_layers), ("decoder", decoder_layers)):
        given |= {f"{part}/layer_{index}/ffn/layer_norm/gamma": (width,) for index in range(layers)}
    tensors = {name: _random(name, shape) for name, shape in given.items()}
    checkpoint = Checkpoint(tensors, n_heads=width // HEAD_SIZE)
    tensors |= {name: _random(name, shape) for name, shape in expected_arrays(checkpoint)}
    return checkpoint


def alignment_heads(checkpoint: Checkpoint) -> list[tuple[int, int]]:
    """Return about as many (layer, head) as published models align words with."""
    last = checkpoint.n_layers("decoder") - 1
    return [(last, head) for head in range(min(checkpoint.n_heads, _ALIGNMENT_HEADS))]


def write_tokenizer(path: Path) -> None:
    """Write a tokenizer of single bytes, with the special tokens that a prompt needs."""
    tokenizer = BpeTokenizer(BPE(dict(BYTE_OF), []))
    content = json.loads(tokenizer.to_str())
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    content["added_tokens"] = [
        {"id": token, "content": name, "special": True, **plain} for token, name in _SPECIAL.items()
    ]
    path.write_text(json.dumps(content), encoding="utf-8")


def _dimension(options: Mapping[str, OptionValue], name: str) -> int:
    value, most = options.get(name), _DIMENSIONS[name]
    if type(value) is not int or not 1 <= value <= most:
        raise ModelError(f"option {name} of a shape is {value!r}", f"give a number from 1 to {most}")
    return value


def _random(name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return an array whose rows are shifted views of one random row: gigabytes that take no memory.

    No two arrays are equal: OpenVINO would keep one of them, and read that out of the processor's cache.
    Values are about as large as trained ones, so that nothing overflows in many layers.
    """
    if len(shape) == 1:
        return np.full(shape, 1 if name.endswith("gamma") else 0, np.float32)
    rows, inner = shape[0], math.prod(shape[1:])
    values = np.random.default_rng(crc32(name.encode())).standard_normal(rows + inner - 1, np.float32)
    values *= np.float32(inner**-0.5)
    return np.lib.stride_tricks.sliding_window_view(values, inner).reshape(shape)
