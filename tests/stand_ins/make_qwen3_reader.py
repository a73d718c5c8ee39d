"""Makes the Qwen3 stand-in: python make_qwen3_reader.py NEW_FOLDER (what it needs: see tiny.py; and gguf).

A random model of the architecture as a GGUF file, whose values lose nothing in its blocks, and a reference of
what PyTorch makes of a question, by the template of the published models with thinking switched off.
"""

import json
import sys
from pathlib import Path

import gguf
import numpy as np
import tiny
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from as2d_mnn_llm.chat import _SYSTEM

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<think>", "</think>")
PASSAGE = "The committee met on Tuesday in Oslo. It looked at the plan for the new bridge."
QUESTIONS = ("Where did the committee meet?", "What did it look at?", "Who spoke?")
# What of the published template system, user and an answer without thoughts go through.
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"
    "{% endif %}"
)
LAYERS = 2
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
Q8_0 = gguf.GGMLQuantizationType.Q8_0


def config() -> Qwen3Config:
    return Qwen3Config(
        vocab_size=320,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=2048,
        rope_theta=1000000.0,
        tie_word_embeddings=False,  # random ones with one matrix for both say one word for ever
        attn_implementation="eager",
    )


def on_grid(model: torch.nn.Module) -> None:
    for weight in model.parameters():
        if weight.dim() == 2:
            blocks = gguf.quantize(weight.data.numpy(), Q8_0)
            weight.data = torch.from_numpy(gguf.dequantize(blocks, Q8_0).copy())


def write(model: torch.nn.Module, tokenizer, path: Path) -> None:
    writer, made = gguf.GGUFWriter(path, "qwen3"), model.config
    writer.add_block_count(made.num_hidden_layers)
    writer.add_embedding_length(made.hidden_size)
    writer.add_feed_forward_length(made.intermediate_size)
    writer.add_head_count(made.num_attention_heads)
    writer.add_head_count_kv(made.num_key_value_heads)
    writer.add_key_length(made.head_dim)
    writer.add_rope_freq_base(made.rope_theta)
    writer.add_layer_norm_rms_eps(made.rms_norm_eps)
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    ids = {
        **content["model"]["vocab"],
        **{token["content"]: token["id"] for token in content["added_tokens"]},
    }
    names = {number: token for token, number in ids.items()}
    tokens = [names.get(number, f"[PAD{number}]") for number in range(made.vocab_size)]
    added = {token["content"] for token in content["added_tokens"]}
    ordinary, control, unused = gguf.TokenType.NORMAL, gguf.TokenType.CONTROL, gguf.TokenType.UNUSED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [control if one in added else unused if one.startswith("[PAD") else ordinary for one in tokens]
    )
    merges = content["model"]["merges"]
    writer.add_token_merges([one if isinstance(one, str) else " ".join(one) for one in merges])
    writer.add_chat_template(TEMPLATE)
    weights = model.state_dict()
    named = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    for layer in range(LAYERS):
        named |= {f"blk.{layer}.{to}": f"model.layers.{layer}.{name}" for name, to in NAMES.items()}
    for to, name in named.items():
        values = weights[f"{name}.weight"].numpy()
        if values.ndim == 1:
            writer.add_tensor(f"{to}.weight", values)
        else:
            writer.add_tensor(f"{to}.weight", gguf.quantize(values, Q8_0), raw_dtype=Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(destination: Path) -> None:
    destination.mkdir()
    tokenizer = tiny.write_tokenizer(destination, SPECIALS)
    tokenizer.chat_template = TEMPLATE
    ends = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])

    @torch.no_grad()
    def made(seed: int) -> tuple[torch.nn.Module, list[dict], float]:
        model = Qwen3ForCausalLM(config()).eval()
        tiny.enliven(model, seed, 1.6)
        torch.manual_seed(seed)
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.data = 1 + 0.2 * torch.randn(weight.shape)
        on_grid(model)
        found, least = [], np.inf
        for question in QUESTIONS:
            asked = f'Transcript:\n"""\n{PASSAGE}\n"""\n\n{question}'
            messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": asked}]
            given = tokenizer.apply_chat_template(
                messages,
                add_generation_prompt=True,
                enable_thinking=False,
                return_tensors="pt",
                return_dict=True,
            )
            ids, distance = tiny.generate(model, given, ends)
            length = given["input_ids"].shape[1]
            least = min(least, distance)
            found.append({"question": question, "prompt": ids[:length], "tokens": ids[length:]})
        return model, found, least

    seed = tiny.lively(lambda seed: made(seed)[1:], range(500), 0.01)
    model, found, _ = made(seed)
    write(model, tokenizer, destination / "model.gguf")
    (destination / "reference.json").write_text(json.dumps({"passage": PASSAGE, "cases": found}) + "\n")
    for file in destination.iterdir():
        if file.name not in {"model.gguf", "reference.json"}:
            file.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
