"""Qwen2-Audio (arXiv 2407.10759): a Whisper-like encoder over the whole window, then Qwen."""

from __future__ import annotations

from pathlib import Path

from as2d_cli.plugin import FeatureSpec, Request
from as2d_mnn_llm.audio.encoder import AudioGraph, Encode, heard
from as2d_mnn_llm.audio.family import SOUND, Family, Prompt, Special, chat, instruction

_FRAMES_PER_TOKEN = 4


def load_encoder(folder: Path, threads: int) -> Encode:
    """Load an encoder that gives an embedding for each 40 ms of audio; padding is masked, as in training."""
    graph = AudioGraph(folder / "audio.mnn", threads, ["input_features"])
    return lambda features: graph.run(heard(features, _FRAMES_PER_TOKEN)[None])


def prompt(request: Request) -> Prompt:
    """Return the conversation, as the processor of transformers 4.57 writes it."""
    sound = ("Audio 1: ", Special("<|audio_bos|>"), SOUND, Special("<|audio_eos|>"))
    return chat("You are a helpful assistant.", *sound, "\n" + instruction(request))


FAMILY = Family(
    model_type="qwen2_audio",
    features=FeatureSpec(n_mels=128, reach=159),
    load_encoder=load_encoder,
    prompt=prompt,
    languages=("en", "zh", "yue", "fr", "it", "es", "de", "ja"),
)
