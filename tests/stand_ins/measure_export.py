"""Measures the memory that exporting Qwen2.5-Omni 7B takes: python measure_export.py.

Needs what tiny.py needs, 8 GB on the disk and 14 GB of memory.

The checkpoint cannot be had here. So random weights in the published dimensions are exported: the whole
encoder with one layer of the decoder. What a second one adds, measured with one layer of the encoder, is
counted for all the others.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import tiny
import torch
from make_qwen2_5_omni import SPECIALS, config
from safetensors.torch import save_file
from transformers import Qwen2_5OmniThinkerForConditionalGeneration

DECODER_LAYERS, ENCODER_LAYERS = 28, 32


def write(folder: Path, decoder_layers: int, encoder_layers: int) -> None:
    """Write a checkpoint of random weights in bfloat16, as the published one is."""
    made = config(tiny.write_tokenizer(folder, SPECIALS))
    thinker = made.thinker_config
    for name, value in {
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": decoder_layers,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "vocab_size": 152064,
        "rope_scaling": {"rope_type": "default", "type": "default", "mrope_section": [16, 24, 24]},
        "layer_types": ["full_attention"] * decoder_layers,
    }.items():
        setattr(thinker.text_config, name, value)
    for name, value in {
        "d_model": 1280,
        "encoder_layers": encoder_layers,
        "encoder_attention_heads": 20,
        "encoder_ffn_dim": 5120,
        "output_dim": 3584,
    }.items():
        setattr(thinker.audio_config, name, value)
    thinker.vision_config.out_hidden_size = 3584
    torch.set_default_dtype(torch.bfloat16)
    model = Qwen2_5OmniThinkerForConditionalGeneration(thinker)
    torch.set_default_dtype(torch.float32)
    weights = {f"thinker.{name}": value for name, value in model.state_dict().items()}

    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    made.architectures = ["Qwen2_5OmniForConditionalGeneration"]
    torch.save({}, folder / "spk_dict.pt")  # voices: the loader wants a file of them
    (folder / "config.json").write_text(made.to_json_string(use_diff=False))


def peak_mb(decoder_layers: int, encoder_layers: int) -> int:
    """Return the largest resident memory of the export, mapped files included, in megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "source", Path(folder) / "made"
        source.mkdir()
        here = [sys.executable, __file__, "--write", str(source), str(decoder_layers), str(encoder_layers)]
        subprocess.run(here, check=True)
        command = Path(sys.executable).with_name("as2d")
        export = [str(command), "models", "export", str(source), "--to", str(made)]
        measured = [sys.executable, __file__, "--run", *export]
        return int(subprocess.run(measured, check=True, stdout=subprocess.PIPE).stdout.split()[-1])


def run(command: list[str]) -> None:
    """Run a command, then print its largest resident memory in megabytes."""
    subprocess.run(command, check=True)
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000)


def main() -> None:
    encoder, one, two = peak_mb(1, ENCODER_LAYERS), peak_mb(1, 1), peak_mb(2, 1)
    whole = encoder + (DECODER_LAYERS - 1) * (two - one)
    print(json.dumps({"1+32": encoder, "1+1": one, "2+1": two, "28+32": whole}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    elif sys.argv[1:2] == ["--run"]:
        run(sys.argv[2:])
    else:
        main()
