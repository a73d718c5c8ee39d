"""Makes the Qwen2.5-Omni stand-in: python make_qwen2_5_omni.py NEW_FOLDER (what it needs: see tiny.py).

A random model of the architecture with its talker, a reference of what PyTorch makes of it, and the export
of its thinker for MNN.
"""

import sys
import tempfile
from functools import partial
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import tiny
import torch
from transformers import (
    Qwen2_5OmniConfig,
    Qwen2_5OmniForConditionalGeneration,
    Qwen2_5OmniProcessor,
    WhisperFeatureExtractor,
)
from transformers.processing_utils import ProcessorMixin

from as2d_cli.domain.types import Request
from as2d_mnn_llm.audio.family import instruction
from as2d_mnn_llm.checkpoints.torch_export import export

SPECIALS = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>"),
    *("<|IMAGE|>", "<|VIDEO|>", "<|vision_bos|>", "<|vision_eos|>"),
)
SYSTEMS = {
    "transcribe": "You are a speech recognition model.",
    "translate": "You are a speech translation model.",
    "ask": "You are a helpful assistant.",
}
TOKEN2WAV = {
    "dit_config": {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "head_dim": 16,
        "emb_dim": 16,
        "enc_emb_dim": 16,
        "enc_dim": 16,
        "enc_channels": [16, 16, 16, 16, 48],
        "enc_attention_channels": 8,
        "enc_se_channels": 8,
        "mel_dim": 16,
        "look_ahead_layers": [0],
        "look_backward_layers": [0],
    },
    "bigvgan_config": {"mel_dim": 16, "upsample_initial_channel": 64},
}
REQUESTS = (Request(), Request(language="de"), Request("translate"), Request("ask", question="Who speaks?"))
# What of the hub's chat_template.json a system line, a sound and a text go through.
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}<|im_end|>\n"
    "{% else %}{% for content in message['content'] %}"
    "{% if content['type'] == 'audio' %}<|audio_bos|><|AUDIO|><|audio_eos|>"
    "{% else %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def config(tokenizer) -> Qwen2_5OmniConfig:
    special = tokenizer.convert_tokens_to_ids
    thinker = {
        "audio_config": {
            "num_mel_bins": 128,
            "encoder_layers": 2,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 64,
            "d_model": 32,
            "max_source_positions": 1500,
            "n_window": 100,
            "output_dim": 64,
        },
        "vision_config": {"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16},
        "text_config": {
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 320,
            "max_position_embeddings": 2048,
            "rope_scaling": {"rope_type": "default", "type": "default", "mrope_section": [2, 3, 3]},
        },
        "audio_token_index": special("<|AUDIO|>"),
        "image_token_index": special("<|IMAGE|>"),
        "video_token_index": special("<|VIDEO|>"),
        "audio_start_token_id": special("<|audio_bos|>"),
        "audio_end_token_id": special("<|audio_eos|>"),
        "vision_start_token_id": special("<|vision_bos|>"),
        "vision_end_token_id": special("<|vision_eos|>"),
        "user_token_id": 0,
    }
    thinker["vision_config"] |= {"out_hidden_size": 64, "fullatt_block_indexes": [0]}
    return Qwen2_5OmniConfig(
        thinker_config=thinker,
        talker_config=talker(thinker),
        token2wav_config=TOKEN2WAV,
        enable_audio_output=True,
        attn_implementation="eager",
    )


def talker(thinker: dict) -> dict:
    text = thinker["text_config"]
    return text | {
        "embedding_size": text["hidden_size"],
        "head_dim": 16,
        "audio_token_index": thinker["audio_token_index"],
        "vision_start_token_id": thinker["vision_start_token_id"],
    }


class Processor(Qwen2_5OmniProcessor):
    """The processor without its parts for pictures, which want more packages."""

    attributes = ("feature_extractor", "tokenizer")

    def __init__(self, tokenizer):
        ProcessorMixin.__init__(
            self, WhisperFeatureExtractor(feature_size=128), tokenizer, chat_template=TEMPLATE
        )
        self.image_processor = self.video_processor = SimpleNamespace(merge_size=2)
        self.image_token, self.video_token = "<|IMAGE|>", "<|VIDEO|>"
        self.vision_bos_token, self.vision_eos_token = "<|vision_bos|>", "<|vision_eos|>"
        self.audio_token, self.audio_bos_token = tokenizer.audio_token, tokenizer.audio_bos_token
        self.audio_eos_token = tokenizer.audio_eos_token


def inputs(processor, seconds: float, request: Request) -> dict:
    """Return what the processor makes of the conversation: the instruction comes before the sound."""
    content = [{"type": "text", "text": instruction(request)}, {"type": "audio"}]
    system = {"role": "system", "content": [{"type": "text", "text": SYSTEMS[request.task]}]}
    text = processor.apply_chat_template(
        [system, {"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
    )
    return dict(processor(text=text, audio=tiny.clip(seconds), sampling_rate=16000, return_tensors="pt"))


def main(destination: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = tiny.write_tokenizer(Path(folder), SPECIALS)
        given = partial(inputs, Processor(tokenizer))
        model = Qwen2_5OmniForConditionalGeneration(config(tokenizer)).eval()
        ends = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])

        @torch.no_grad()
        def made(seed: int) -> tuple[list[dict], float]:
            tiny.enliven(model, seed, 1.6)
            found, least = [], np.inf
            for seconds, request in zip(tiny.SECONDS, cycle(REQUESTS)):
                asked = given(seconds, request)
                ids, distance = tiny.generate(model.thinker, asked, ends)
                length = asked["input_ids"].shape[1]
                least = min(least, distance)
                found.append(tiny.case(seconds, request, ids[:length], ids[length:]))
            return found, least

        found, _ = made(tiny.lively(made, range(500), 0.009))
        model.save_pretrained(folder)
        torch.save({}, Path(folder) / "spk_dict.pt")  # voices: the loader wants a file of them
        export(Path(folder), destination, bits=16)

    def hear(seconds: float) -> dict:
        heard = given(seconds, Request())
        return {name: heard[name] for name in ("input_features", "feature_attention_mask")}

    tiny.write_reference(destination, found, hear, lambda heard: model.thinker.get_audio_features(**heard))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
