"""Makes the Qwen3-ASR stand-in: python make_qwen3_asr.py NEW_FOLDER.

What it needs: see tiny.py; and qwen-asr==0.0.6, installed without its dependencies (--no-deps).

A random model of the architecture as a checkpoint, which the plugin converts without PyTorch, and a
reference of what PyTorch makes of it. The model is trained a little, on noise, to say the language first.
"""

import importlib.util
import sys
from itertools import cycle
from pathlib import Path

import numpy as np
import tiny
import torch
from safetensors.torch import save_file
from transformers import WhisperFeatureExtractor

from as2d_cli.domain.types import Request
from as2d_mnn_llm.export.records import quantise

sys.path.append(str(Path(importlib.util.find_spec("qwen_asr").origin).parent / "core"))  # without the rest
from transformers_backend.configuration_qwen3_asr import Qwen3ASRConfig
from transformers_backend.modeling_qwen3_asr import Qwen3ASRForConditionalGeneration
from transformers_backend.processing_qwen3_asr import Qwen3ASRProcessor

SPECIALS = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|audio_pad|>", "<|audio_start|>", "<|audio_end|>"),
    "<asr_text>",
)
REQUESTS = (Request(), Request(language="de"), Request(prompt="names: Ask not"))
LANGUAGES = {"de": "German"}
TEXT = "language English " * 40 + "language German " * 20


def config(tokenizer) -> Qwen3ASRConfig:
    special = tokenizer.convert_tokens_to_ids
    thinker = {
        "audio_config": {
            "num_mel_bins": 128,
            "encoder_layers": 2,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 64,
            "d_model": 32,
            "downsample_hidden_size": 8,
            "output_dim": 64,
            "n_window": 50,
            "n_window_infer": 800,
        },
        "text_config": {
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "vocab_size": 320,
            "max_position_embeddings": 2048,
            "rope_theta": 1000000.0,
            "rope_scaling": {"rope_type": "default", "mrope_section": [3, 3, 2], "mrope_interleaved": True},
        },
        "audio_token_id": special("<|audio_pad|>"),
        "audio_start_token_id": special("<|audio_start|>"),
    }
    return Qwen3ASRConfig(thinker_config=thinker, attn_implementation="eager")


def attend_in_windows(encoder: torch.nn.Module) -> None:
    """Give layers the mask that stands for `cu_seqlens`, which only FlashAttention heeds by itself."""

    def windowed(forward):
        def run(hidden, lengths, **kwargs):
            return forward(hidden, lengths, encoder._prepare_attention_mask(hidden, lengths), **kwargs)

        return run

    for layer in encoder.layers:
        layer.forward = windowed(layer.forward)


def prompt(request: Request) -> str:
    text = f"<|im_start|>system\n{request.prompt or ''}<|im_end|>\n<|im_start|>user\n"
    text += "<|audio_start|><|audio_pad|><|audio_end|><|im_end|>\n<|im_start|>assistant\n"
    return text + (f"language {LANGUAGES[request.language]}<asr_text>" if request.language else "")


def hear(processor, samples: np.ndarray, text: str) -> dict:
    return dict(processor(text=text, audio=samples, sampling_rate=16000, return_tensors="pt"))


def teach(thinker, processor, steps: int) -> None:
    """Train the decoder to say `language English<asr_text>`, and then letters, of a few noises."""
    preamble = processor.tokenizer("language English<asr_text>")["input_ids"]
    noises = [torch.randn(14_400 + 9_600 * index).numpy() / 10 for index in range(4)]
    lessons = [(noise, preamble + torch.randint(32, 91, (tiny.TOKENS,)).tolist()) for noise in noises]
    weights = [*thinker.model.parameters(), thinker.lm_head.weight]
    optimizer = torch.optim.Adam(weights, lr=0.004)
    for step in range(steps):
        noise, said = lessons[step % len(lessons)]
        given = hear(processor, noise, prompt(REQUESTS[step % 2 * 2]))
        length = given["input_ids"].shape[1]
        given["input_ids"] = torch.cat([given["input_ids"], torch.tensor([said])], dim=1)
        given["attention_mask"] = torch.ones_like(given["input_ids"])
        logits = thinker(**given).logits[0, length - 1 : length - 1 + len(said)]
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(said))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def on_grid(thinker) -> None:
    """Round the decoder's matrices to what the conversion stores them as: then it loses nothing."""
    for name, weight in [*thinker.model.named_parameters(), ("lm_head", thinker.lm_head.weight)]:
        if "embed_tokens" in name:
            weight.data = weight.data.bfloat16().float()
        elif weight.dim() == 2:
            weight.data = torch.from_numpy(quantise(weight.data.numpy(), 8, 64).values())


def made(seed: int, processor) -> tuple[torch.nn.Module, list[dict], float]:
    torch.manual_seed(seed)
    model = Qwen3ASRForConditionalGeneration(config(processor.tokenizer)).eval()
    attend_in_windows(model.thinker.audio_tower)
    tiny.enliven(model, seed, 1.6)
    teach(model.thinker, processor, 120)
    on_grid(model.thinker)
    special = processor.tokenizer.convert_tokens_to_ids
    ends, marker = special(["<|im_end|>", "<|endoftext|>"]), special("<asr_text>")
    found, least = [], np.inf
    for seconds, request in zip(tiny.SECONDS, cycle(REQUESTS)):
        given = hear(processor, tiny.clip(seconds), prompt(request))
        ids, distance = tiny.generate(model.thinker, given, ends)
        length = given["input_ids"].shape[1]
        tells = request.language is not None or marker in ids[length:]
        least = min(least, distance) if tells else -1
        found.append(tiny.case(seconds, request, ids[:length], ids[length:]))
    return model, found, least


def main(destination: Path) -> None:
    destination.mkdir()
    tokenizer = tiny.write_tokenizer(destination, SPECIALS, text=TEXT)
    processor = Qwen3ASRProcessor(WhisperFeatureExtractor(feature_size=128), tokenizer)
    seed = tiny.lively(lambda seed: made(seed, processor)[1:], range(500), 0.01)
    model, found, _ = made(seed, processor)
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items()}
    save_file(weights, destination / "model.safetensors")
    model.config.save_pretrained(destination)
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        (destination / name).unlink()

    def heard(seconds: float) -> dict:
        given = hear(processor, tiny.clip(seconds), prompt(Request()))
        return {name: given[name] for name in ("input_features", "feature_attention_mask")}

    encode = model.thinker.get_audio_features
    tiny.write_reference(destination, found, heard, lambda one: encode(**one))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
