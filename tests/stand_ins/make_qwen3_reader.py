"""Makes the Qwen3 stand-in: python make_qwen3_reader.py NEW_FOLDER (what it needs: see tiny.py; and gguf).

A random model of the architecture as a GGUF file, whose values lose nothing in its blocks, and a reference of
what PyTorch makes of a question, by the template of the published models with thinking switched off.
"""

import json
import sys
from pathlib import Path

import gguf
import gguf_file
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


def write(model: torch.nn.Module, tokenizer, path: Path) -> None:
    made = model.config
    writer = gguf_file.begin(path, "qwen3", made)
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
    gguf_file.end(writer, model, gguf_file.LAYER, 0)


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
        gguf_file.on_grid(model)
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
            logits = [round(value, 4) for value in model(**given).logits[0, -1].tolist()]
            case = {"question": question, "prompt": ids[:length], "tokens": ids[length:], "logits": logits}
            found.append(case)
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
