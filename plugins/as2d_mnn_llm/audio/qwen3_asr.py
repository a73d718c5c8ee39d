"""Qwen3-ASR (arXiv 2601.21337): an encoder of its own kind, then Qwen3, which says the language first.

It transcribes only. What it answers is `language English<asr_text>` and the text; asked for a language, it
is given that beginning and goes on with the text.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import Features, FeatureSpec, ModelError, Request
from as2d_mnn_llm.audio.encoder import AudioGraph, Encode, heard
from as2d_mnn_llm.audio.family import SOUND, Family, Prompt, Special, chat

CHUNK_FRAMES = 100
"""Frames that the convolutions see together; behind a window's end they see zeros."""
_CHUNKS_TOGETHER = 8
"""Chunks whose tokens attend to each other (`n_window_infer` of the published models)."""
_MAX_CONTEXT_TOKENS = 512
"""The model takes far more, but each one costs time in every window."""
_MARKER = "<asr_text>"
_MAX_WIDTH = 1 << 16
_NAMES = {
    "zh": "Chinese", "en": "English", "yue": "Cantonese", "ar": "Arabic", "de": "German", "fr": "French",
    "es": "Spanish", "pt": "Portuguese", "id": "Indonesian", "it": "Italian", "ko": "Korean", "ru": "Russian",
    "th": "Thai", "vi": "Vietnamese", "ja": "Japanese", "tr": "Turkish", "hi": "Hindi", "ms": "Malay",
    "nl": "Dutch", "sv": "Swedish", "da": "Danish", "fi": "Finnish", "pl": "Polish", "cs": "Czech",
    "tl": "Filipino", "fa": "Persian", "el": "Greek", "ro": "Romanian", "hu": "Hungarian",
    "mk": "Macedonian",
}  # fmt: skip


def load_encoder(folder: Path, threads: int) -> Encode:
    """Load an encoder that gives 13 embeddings for each second of audio.

    In training, convolutions and positions begin anew each second and attention every eight seconds
    (`Qwen3ASRAudioEncoder` of qwen-asr 0.0.6, with FlashAttention's `cu_seqlens`).
    """
    width = _width(folder / "audio_width.npy")
    front = AudioGraph(folder / "audio_front.mnn", threads, ["input_features", "positions"])
    layers = AudioGraph(folder / "audio.mnn", threads, ["hidden_states"])

    def encode(features: Features) -> NDArray[np.float32]:
        chunks, n_tokens = _chunks(heard(features, 1))
        tokens_each = _n_tokens_of(chunks.shape[3])
        hidden = front.run(chunks, positions(tokens_each, width))[:n_tokens]
        together = _CHUNKS_TOGETHER * tokens_each
        parts = [hidden[start : start + together] for start in range(0, n_tokens, together)]
        return np.concatenate([layers.run(part[None]) for part in parts])

    return encode


def _width(path: Path) -> int:
    """Return the width of the hidden states, which a file of one number tells. Raises `ModelError`.

    It is what numpy writes of an int32, and nothing else: numpy's reader believes the sizes in a header.
    """
    sound = io.BytesIO()
    np.save(sound, np.int32(0))
    head = sound.getvalue()[:-4]
    try:
        with path.open("rb") as file:
            content = file.read(len(head) + 5)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}", "export or fetch the model anew") from error
    width = int.from_bytes(content[len(head) :], "little")
    if not content.startswith(head) or len(content) != len(head) + 4 or not 2 < width <= _MAX_WIDTH:
        raise ModelError(f"{path}: not a width that can be", "export or fetch the model anew")
    return width


def _chunks(sound: Features) -> tuple[NDArray[np.float32], int]:
    """Return the sound in chunks, shape (n, 1, mels, frames), and how many tokens are not of padding."""
    mels, frames = sound.shape
    whole, rest = divmod(frames, CHUNK_FRAMES)
    n_tokens = whole * _n_tokens_of(CHUNK_FRAMES) + (_n_tokens_of(rest) if rest else 0)
    if not whole:
        return sound[None, None], n_tokens
    padded = np.pad(sound, ((0, 0), (0, -frames % CHUNK_FRAMES)))
    return padded.reshape(mels, -1, CHUNK_FRAMES).swapaxes(0, 1)[:, None], n_tokens


def _n_tokens_of(frames: int) -> int:
    """Return what three convolutions of stride 2 leave of `frames`."""
    return -(-frames // 8)


def positions(count: int, width: int) -> NDArray[np.float32]:
    """Return sinusoidal positions, shape (count, width), as Whisper's encoder has them."""
    half = width // 2
    rates = np.exp(-np.log(10_000) / (half - 1) * np.arange(half, dtype=np.float32))
    angles = np.arange(count, dtype=np.float32)[:, None] * rates
    both: NDArray[np.float32] = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
    return both


def prompt(request: Request) -> Prompt:
    """Return the conversation, as qwen-asr 0.0.6 writes it; the system's part is what was said before."""
    sound = (Special("<|audio_start|>"), SOUND, Special("<|audio_end|>"))
    asked = chat(request.prompt or "", *sound)
    if request.language is None:
        return asked
    return (*asked, f"language {_NAMES[request.language]}", Special(_MARKER))


FAMILY = Family(
    model_type="qwen3_asr",
    features=FeatureSpec(n_mels=128, reach=0),
    load_encoder=load_encoder,
    prompt=prompt,
    languages=tuple(_NAMES),
    tasks=("transcribe",),
    files=("audio_front.mnn", "audio.mnn", "audio_width.npy"),
    instead="use the original checkpoint, as qwen3-asr-1.7b does: it is converted on this machine",
    max_prompt_tokens=_MAX_CONTEXT_TOKENS,
    marker=_MARKER,
    language_of={f"language {name}": code for code, name in _NAMES.items()},
)
