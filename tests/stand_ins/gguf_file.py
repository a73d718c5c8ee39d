"""Writes random models as GGUF files, in blocks of 8 bits of which their values are made."""

from collections.abc import Mapping
from pathlib import Path

import gguf
import torch

LAYER = {
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
"""What transformers and GGUF call the weights of a layer."""
_Q8_0 = gguf.GGMLQuantizationType.Q8_0


def on_grid(model: torch.nn.Module) -> None:
    """Round matrices to values that lose nothing in the file."""
    for weight in model.parameters():
        if weight.dim() == 2:
            blocks = gguf.quantize(weight.data.numpy(), _Q8_0)
            weight.data = torch.from_numpy(gguf.dequantize(blocks, _Q8_0).copy())


def begin(path: Path, kind: str, config) -> gguf.GGUFWriter:
    """Return a writer that has the dimensions of a model."""
    writer = gguf.GGUFWriter(path, kind)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    return writer


def end(writer: gguf.GGUFWriter, model: torch.nn.Module, layer: Mapping[str, str], norm_plus: float) -> None:
    """Write the weights, `norm_plus` more than they are of norms, and close the file."""
    weights = model.state_dict()
    named = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    for number in range(model.config.num_hidden_layers):
        named |= {f"blk.{number}.{to}": f"model.layers.{number}.{name}" for name, to in layer.items()}
    for to, name in named.items():
        values = weights[f"{name}.weight"].numpy()
        if values.ndim == 1:
            writer.add_tensor(f"{to}.weight", values + values.dtype.type(norm_plus))
        else:
            writer.add_tensor(f"{to}.weight", gguf.quantize(values, _Q8_0), raw_dtype=_Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
