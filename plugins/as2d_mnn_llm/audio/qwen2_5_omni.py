"""Qwen2.5-Omni's thinker (arXiv 2503.20215): an encoder that hears two seconds at a time, then Qwen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from as2d_cli.plugin import Features, FeatureSpec, Request
from as2d_mnn_llm.audio.encoder import AudioGraph, Encode, heard
from as2d_mnn_llm.audio.family import SOUND, Family, Prompt, Special, chat, instruction

_CHUNK_FRAMES = 200
_FRAMES_PER_TOKEN = 4
_LEAST_FRAMES = 3  # of a chunk that has a token
_SYSTEM = {
    "transcribe": "You are a speech recognition model.",
    "translate": "You are a speech translation model.",
    "ask": "You are a helpful assistant.",
}


def load_encoder(folder: Path, threads: int) -> Encode:
    """Load an encoder that gives an embedding for each 40 ms of audio.

    The encoder was trained on chunks of two seconds: positions, convolutions and attention begin anew in
    each (`Qwen2_5OmniAudioEncoder` of transformers 4.57). The exported graph knows of attention only, by a
    mask; run on one chunk at a time it gives what the model was trained to give.
    """
    graph = AudioGraph(folder / "audio.mnn", threads, ["input_features", "attention_mask"])

    def encode(features: Features) -> NDArray[np.float32]:
        sound = heard(features, _FRAMES_PER_TOKEN)
        starts = range(0, sound.shape[1] - _LEAST_FRAMES + 1, _CHUNK_FRAMES)
        return np.concatenate([_encode(graph, sound[:, start : start + _CHUNK_FRAMES]) for start in starts])

    return encode


def _encode(graph: AudioGraph, chunk: Features) -> NDArray[np.float32]:
    positions = (chunk.shape[1] - 1) // 2 + 1
    return graph.run(chunk[None], np.zeros((1, positions, positions), np.float32))


def prompt(request: Request) -> Prompt:
    """Return the conversation; the system's lines are those of Qwen's own evaluations.

    The instruction comes before the sound, as in Qwen's cookbook for the model.
    """
    sound = (Special("<|audio_bos|>"), SOUND, Special("<|audio_eos|>"))
    return chat(_SYSTEM[request.task], instruction(request), *sound)


FAMILY = Family(
    model_type="qwen2_5_omni",
    features=FeatureSpec(n_mels=128, reach=159),
    load_encoder=load_encoder,
    prompt=prompt,
    mrope=True,
    languages=("en", "zh", "de", "es", "fr", "it", "ja", "ko", "pt", "ru", "ar", "id", "vi", "yue"),
)
