"""Makes the Gemma 3 stand-in: python make_gemma3_reader.py NEW_FOLDER.

Needs what tiny.py needs, and gguf and sentencepiece. A random model of the architecture with a small
vocabulary of SentencePiece as a GGUF file, whose values lose nothing in its blocks, and a reference of what
PyTorch makes of a question by the template of the published models. The passage is longer than what most
layers see.
"""

import json
import sys
import tempfile
from pathlib import Path

import gguf
import gguf_file
import numpy as np
import sentencepiece
import tiny
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, GemmaTokenizerFast

from as2d_mnn_llm.chat import _SYSTEM

PASSAGE = (
    "The committee met on Tuesday in Oslo.  It looked at the plan:\n\n\tthe new bridge, naïve or not. 😀"
)
QUESTIONS = ("Where did the committee meet?", "What did it look at?", "Who spoke?")
# What of the published template a user's turn with a system's text goes through.
TEMPLATE = (
    "{{ bos_token }}{% for message in messages[1:] %}<start_of_turn>user\n"
    "{{ messages[0].content }}\n\n{{ message.content | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
CONTROLS = ["<start_of_turn>", "<end_of_turn>"]
ADDED = ["\n", "\n\n", "\t", "▁▁", "<h1>"]
LAYERS = {
    **gguf_file.LAYER,
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def write_vocabulary(folder: Path) -> tuple[GemmaTokenizerFast, sentencepiece.SentencePieceProcessor]:
    text = folder / "text"
    text.write_text("\n".join([_SYSTEM, PASSAGE, *QUESTIONS, tiny._TEXT] * 3))
    sentencepiece.SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(folder / "spm"),
        model_type="bpe",
        vocab_size=384,
        byte_fallback=True,
        character_coverage=0.99,
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        pad_id=0,
        eos_id=1,
        bos_id=2,
        unk_id=3,
        pad_piece="<pad>",
        eos_piece="<eos>",
        bos_piece="<bos>",
        control_symbols=CONTROLS,
        user_defined_symbols=ADDED,
    )
    spoken = sentencepiece.SentencePieceProcessor(str(folder / "spm.model"))
    return GemmaTokenizerFast(str(folder / "spm.model"), chat_template=TEMPLATE), spoken


def config() -> Gemma3TextConfig:
    return Gemma3TextConfig(
        vocab_size=384,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=7,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        query_pre_attn_scalar=16,
        sliding_window=32,
        max_position_embeddings=2048,
        rope_scaling={"rope_type": "linear", "factor": 8.0},
        tie_word_embeddings=False,  # random ones with one matrix for both say one word for ever
        attn_implementation="eager",
    )


def write(model: torch.nn.Module, vocabulary: sentencepiece.SentencePieceProcessor, path: Path) -> None:
    writer, made = gguf_file.begin(path, "gemma3", model.config), model.config
    writer.add_sliding_window(made.sliding_window)
    writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    writer.add_rope_scaling_factor(made.rope_scaling["factor"])
    ids, kinds = range(vocabulary.get_piece_size()), gguf.TokenType
    # As llama.cpp's convert_hf_to_gguf.py: `_create_vocab_sentencepiece`.
    types = [
        kinds.UNKNOWN
        if vocabulary.is_unknown(one)
        else kinds.CONTROL
        if vocabulary.is_control(one)
        else kinds.BYTE
        if vocabulary.is_byte(one)
        else kinds.USER_DEFINED
        if vocabulary.id_to_piece(one) in ADDED
        else kinds.NORMAL
        for one in ids
    ]
    tokens = [vocabulary.id_to_piece(one) for one in ids]
    spaced = [
        token.replace("▁", " ") if kind is kinds.USER_DEFINED else token
        for token, kind in zip(tokens, types, strict=True)
    ]
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(spaced)
    writer.add_token_scores([vocabulary.get_score(one) for one in ids])
    writer.add_token_types(types)
    writer.add_unk_token_id(vocabulary.unk_id())
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)
    gguf_file.end(writer, model, LAYERS, 1)


def main(destination: Path) -> None:
    destination.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        tokenizer, vocabulary = write_vocabulary(Path(folder))
    ends = tokenizer.convert_tokens_to_ids(["<end_of_turn>", "<eos>"])

    @torch.no_grad()
    def made(seed: int) -> tuple[torch.nn.Module, list[dict], float]:
        model = Gemma3ForCausalLM(config()).eval()
        tiny.enliven(model, seed, 1.6)
        torch.manual_seed(seed)
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.data = 0.2 * torch.randn(weight.shape)
        gguf_file.on_grid(model)
        found, least = [], np.inf
        for question in QUESTIONS:
            asked = f'Transcript:\n"""\n{PASSAGE}\n"""\n\n{question}'
            messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": asked}]
            given = tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
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
    write(model, vocabulary, destination / "model.gguf")
    reference = {"passage": PASSAGE, "cases": found}
    (destination / "reference.json").write_text(json.dumps(reference) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
