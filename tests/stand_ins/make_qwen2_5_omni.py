"""Makes the Qwen2.5-Omni stand-in: python make_qwen2_5_omni.py NEW_FOLDER (what it needs: see tiny.py).

A random thinker of the architecture, a reference of what PyTorch makes of it, and its export for MNN.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import tiny
import torch
from transformers import Qwen2_5OmniConfig, Qwen2_5OmniForConditionalGeneration, WhisperFeatureExtractor

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
    return Qwen2_5OmniConfig(thinker_config=thinker, enable_audio_output=False, attn_implementation="eager")


def inputs(tokenizer, extractor, seconds: float, request: Request) -> dict:
    content = [{"type": "audio"}, {"type": "text", "text": instruction(request)}]
    system = {"role": "system", "content": SYSTEMS[request.task]}
    text = tokenizer.apply_chat_template(
        [system, {"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
    )
    heard = tiny.hear(extractor, seconds)
    frames = int(heard["feature_attention_mask"].sum())
    text = text.replace("<|AUDIO|>", "<|AUDIO|>" * (((frames - 1) // 2 - 1) // 2 + 1))
    return {**tokenizer(text, return_tensors="pt"), **heard}


def main(destination: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = tiny.write_tokenizer(Path(folder), SPECIALS)
        tokenizer.chat_template = TEMPLATE
        extractor = WhisperFeatureExtractor(feature_size=128)
        model = Qwen2_5OmniForConditionalGeneration(config(tokenizer)).eval()
        ends = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])

        @torch.no_grad()
        def made(seed: int) -> tuple[list[dict], float]:
            tiny.enliven(model, seed, 1.6)
            found, least = [], np.inf
            for seconds in tiny.SECONDS:
                for request in REQUESTS:
                    given = inputs(tokenizer, extractor, seconds, request)
                    ids, distance = tiny.generate(model.thinker, given, ends)
                    length = given["input_ids"].shape[1]
                    least = min(least, distance)
                    found.append(tiny.case(seconds, request, ids[:length], ids[length:]))
            return found, least

        found, _ = made(tiny.liveliest(made, range(24), 0.01))
        model.save_pretrained(folder)
        torch.save({}, Path(folder) / "spk_dict.pt")  # voices: the loader wants a file of them
        export(Path(folder), destination, bits=16)
    encode = model.thinker.get_audio_features
    tiny.write_reference(destination, found, extractor, lambda heard: encode(**heard))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
