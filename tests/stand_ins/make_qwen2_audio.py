"""Makes the Qwen2-Audio stand-in: python make_qwen2_audio.py NEW_FOLDER (what it needs: see tiny.py).

A random model of the architecture, a reference of what PyTorch makes of it, and its export for MNN.
"""

import sys
import tempfile
from itertools import cycle
from pathlib import Path

import numpy as np
import tiny
import torch
from transformers import (
    Qwen2AudioConfig,
    Qwen2AudioForConditionalGeneration,
    Qwen2AudioProcessor,
    WhisperFeatureExtractor,
)

from as2d_cli.domain.types import Request
from as2d_mnn_llm.audio.family import instruction
from as2d_mnn_llm.checkpoints.torch_export import export

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>")
REQUESTS = (Request(), Request(language="de"), Request("translate"), Request("ask", question="Who speaks?"))


def config(tokenizer) -> Qwen2AudioConfig:
    special = tokenizer.convert_tokens_to_ids
    return Qwen2AudioConfig(
        audio_config={
            "num_mel_bins": 128,
            "encoder_layers": 2,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 64,
            "d_model": 32,
            "max_source_positions": 1500,
        },
        text_config={
            "model_type": "qwen2",
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 320,
            "max_position_embeddings": 2048,
            "bos_token_id": special("<|im_start|>"),
            "eos_token_id": special("<|im_end|>"),
        },
        audio_token_index=special("<|AUDIO|>"),
        attn_implementation="eager",
    )


def cases(model, processor, ends) -> tuple[list[dict], float]:
    found, least = [], np.inf
    for seconds, request in zip(tiny.SECONDS, cycle(REQUESTS)):
        given = inputs(processor, seconds, request)
        ids, distance = tiny.generate(model, given, ends)
        length = given["input_ids"].shape[1]
        least = min(least, distance)
        found.append(tiny.case(seconds, request, ids[:length], ids[length:]))
    return found, least


def inputs(processor, seconds: float, request: Request) -> dict:
    content = [{"type": "audio", "audio_url": ""}, {"type": "text", "text": instruction(request)}]
    chat = [{"role": "user", "content": content}]
    text = processor.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    return dict(processor(text=text, audio=tiny.clip(seconds), sampling_rate=16000, return_tensors="pt"))


def encode(model, input_features, feature_attention_mask) -> torch.Tensor:
    lengths, tokens = model.audio_tower._get_feat_extract_output_lengths(feature_attention_mask.sum(-1))
    mask = torch.zeros(1, 1, 1, input_features.shape[2] // 2)
    mask[..., int(lengths[0]) :] = -torch.inf
    hidden = model.audio_tower(input_features, attention_mask=mask.expand(-1, -1, mask.shape[3], -1))
    return model.multi_modal_projector(hidden.last_hidden_state)[0, : int(tokens[0])]


def main(destination: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = tiny.write_tokenizer(Path(folder), SPECIALS)
        processor = Qwen2AudioProcessor(WhisperFeatureExtractor(feature_size=128), tokenizer)
        processor.chat_template = processor.default_chat_template
        model = Qwen2AudioForConditionalGeneration(config(tokenizer)).eval()
        ends = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])

        @torch.no_grad()
        def made(seed: int) -> tuple[list[dict], float]:
            tiny.enliven(model, seed, 1.6)
            return cases(model, processor, ends)

        found, _ = made(tiny.lively(made, range(500), 0.01))
        model.save_pretrained(folder)
        export(Path(folder), destination, bits=16)

    def hear(seconds: float) -> dict:
        heard = inputs(processor, seconds, Request())
        return {name: heard[name] for name in ("input_features", "feature_attention_mask")}

    tiny.write_reference(destination, found, hear, lambda heard: encode(model, **heard))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
