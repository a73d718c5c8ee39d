"""The real default models, the clips of the repository as features, and tiny random Whispers."""

import json
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.audio.stream import open_audio
from as2d_cli.domain.types import SAMPLE_RATE_HZ, WINDOW_S
from as2d_cli.models.registry import load_registry
from as2d_cli.models.weights import ensure
from as2d_whisper.drafter import WhisperDrafter
from as2d_whisper.target import WhisperTarget

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture(scope="session")
def folder_of():
    """Return the folder of a model: fetched and converted at first use, out of the cache from then on."""

    def find(name, **options):
        entry = load_registry().model(name)
        return ensure(replace(entry, options={**entry.options, **options}))

    return find


@pytest.fixture(scope="session")
def base_folder(folder_of):
    return folder_of("whisper-base")


@pytest.fixture(scope="session")
def tiny_en_folder(folder_of):
    return folder_of("whisper-tiny.en")


class PatientTarget(WhisperTarget):
    """Encodes every window once only: these tests open the same one again and again."""

    def __init__(self, folder):
        super().__init__(folder, threads=1)
        encoded, encode = {}, self._model.encode

        def remember(features):
            key = features.tobytes()
            if key not in encoded:
                encoded[key] = encode(features)
            return encoded[key]

        self._model.encode = remember


@pytest.fixture(scope="session")
def base(base_folder):
    return PatientTarget(base_folder)


@pytest.fixture(scope="session")
def tiny_en(tiny_en_folder):
    return PatientTarget(tiny_en_folder)


@pytest.fixture(scope="session")
def drafter(tiny_en_folder):
    return WhisperDrafter(tiny_en_folder, threads=1)


@pytest.fixture(scope="session")
def clip():
    """Return the samples of a clip of the repository, at most one window of them."""

    def load(name):
        with open_audio(DATA / name) as audio:
            samples = np.concatenate(list(audio.blocks()))
        return samples[: int(WINDOW_S * SAMPLE_RATE_HZ)]

    return load


@pytest.fixture(scope="session")
def features(clip):
    """Return the features of a clip for a model's front end."""

    def extract(name, spec):
        return log_mel(clip(name), spec)

    return extract


MERGES = [("\u0120", "t"), ("h", "e"), ("\u0120t", "he"), ("\u0120", "a"), ("i", "n")]
"""The first merges of Whisper's vocabulary, all but the order."""


def byte_alphabet():
    """GPT-2's byte tokens in the order of their ids."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return [chr(byte) for byte in printable] + [chr(0x100 + i) for i in range(256 - len(printable))]


def write_tokenizer(path, languages, merges=MERGES):
    """Write a `tokenizer.json` in Whisper's layout and return the ids of its special tokens."""
    words = [*byte_alphabet(), *("".join(pair) for pair in MERGES)]
    names = ["endoftext", "startoftranscript", *languages, "translate", "transcribe", "startoflm"]
    names += ["startofprev", "nospeech", "notimestamps", "0.00", "0.02"]
    specials = {f"<|{name}|>": len(words) + i for i, name in enumerate(names)}
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    content = {
        "version": "1.0",
        "added_tokens": [{"id": token, "content": name, **added} for name, token in specials.items()],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "vocab": {word: i for i, word in enumerate(words)},
            "merges": [" ".join(pair) for pair in merges],
        },
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return specials


@dataclass
class TinyWhisper:
    """A random Whisper under Hugging Face's names; its weights have float16 values."""

    n_mels: int = 80
    n_heads: int = 1
    n_layers: int = 2
    languages: tuple = ("en", "zh", "de")
    n_audio: int = 50
    seed: int = 0
    arrays: dict = field(init=False)

    def __post_init__(self):
        self.random = np.random.default_rng(self.seed)
        d = self.d_model
        self.vocab_size = 256 + len(MERGES) + 10 + len(self.languages)
        self.arrays = {
            "model.encoder.embed_positions.weight": self.draw(self.n_audio, d),
            "model.decoder.embed_positions.weight": self.draw(448, d, scale=0.3),
            "model.decoder.embed_tokens.weight": self.draw(self.vocab_size, d, scale=0.3),
        }
        self.linear("model.encoder.conv1", d, self.n_mels, 3)
        self.linear("model.encoder.conv2", d, d, 3)
        for part in ("encoder", "decoder"):
            self.norm(f"model.{part}.layer_norm")
            for i in range(self.n_layers):
                self.layer(f"model.{part}.layers.{i}", crossed=part == "decoder")

    @property
    def d_model(self):
        return 64 * self.n_heads

    def draw(self, *shape, scale=1.0):
        return (scale * self.random.standard_normal(shape)).astype(np.float16)

    def linear(self, name, *shape, bias=True):
        self.arrays[f"{name}.weight"] = self.draw(*shape, scale=1.5 / np.sqrt(np.prod(shape[1:])))
        if bias:
            self.arrays[f"{name}.bias"] = self.draw(shape[0], scale=0.1)

    def norm(self, name):
        self.arrays[f"{name}.weight"] = self.draw(self.d_model, scale=0.1) + np.float16(1)
        self.arrays[f"{name}.bias"] = self.draw(self.d_model, scale=0.1)

    def layer(self, name, *, crossed):
        d = self.d_model
        for kind in ("self_attn", "encoder_attn") if crossed else ("self_attn",):
            self.norm(f"{name}.{kind}_layer_norm")
            for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                self.linear(f"{name}.{kind}.{part}", d, d, bias=part != "k_proj")
        self.norm(f"{name}.final_layer_norm")
        self.linear(f"{name}.fc1", 4 * d, d)
        self.linear(f"{name}.fc2", d, 4 * d)

    def write_safetensors(self, folder, *, bfloat16=False, **generation):
        """Write the files of a model on the hub; `generation` goes into generation_config.json."""
        folder.mkdir(exist_ok=True)
        config = {"decoder_attention_heads": self.n_heads, "suppress_tokens": None}
        (folder / "config.json").write_text(json.dumps(config))
        generation = {"is_multilingual": True, "begin_suppress_tokens": [2], **generation}
        (folder / "generation_config.json").write_text(json.dumps(generation))
        if bfloat16:
            write_bfloat16(folder / "model.safetensors", self.arrays)
        else:
            save_file(self.arrays, folder / "model.safetensors", metadata={"format": "pt"})
        return write_tokenizer(folder / "tokenizer.json", self.languages)

    def write_ctranslate2(self, folder, **changed):
        """Write `model.bin` as CTranslate2's converter lays it out; `changed` replaces arrays."""
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps({"suppress_ids": [1], "suppress_ids_begin": [2]}))
        arrays = {**self.ctranslate2_arrays(), **changed}
        (folder / "model.bin").write_bytes(ctranslate2_file(arrays))
        return write_tokenizer(folder / "tokenizer.json", self.languages)

    def ctranslate2_arrays(self):
        """The same weights by CTranslate2's names, as its WhisperSpec joins them."""
        source, found = self.arrays, {"decoder/num_heads": np.int16(self.n_heads)}
        found["decoder/embeddings/weight"] = source["model.decoder.embed_tokens.weight"]
        for part in ("encoder", "decoder"):
            found[f"{part}/position_encodings/encodings"] = source[f"model.{part}.embed_positions.weight"]
            self.rename(found, f"model.{part}.layer_norm", f"{part}/layer_norm", "gamma", "beta")
            for i in range(self.n_layers):
                self.rename_layer(found, f"model.{part}.layers.{i}", f"{part}/layer_{i}", part == "decoder")
        for name in ("conv1", "conv2"):
            self.rename(found, f"model.encoder.{name}", f"encoder/{name}", "weight", "bias")
        return found

    def rename(self, found, theirs, ours, weight, bias):
        found[f"{ours}/{weight}"] = self.arrays[f"{theirs}.weight"]
        found[f"{ours}/{bias}"] = self.arrays[f"{theirs}.bias"]

    def rename_layer(self, found, theirs, ours, crossed):
        self.rename(
            found, f"{theirs}.self_attn_layer_norm", f"{ours}/self_attention/layer_norm", "gamma", "beta"
        )
        self.rename(
            found, f"{theirs}.self_attn.out_proj", f"{ours}/self_attention/linear_1", "weight", "bias"
        )
        self.join(found, f"{theirs}.self_attn", "qkv", f"{ours}/self_attention/linear_0")
        if crossed:
            self.rename(
                found, f"{theirs}.encoder_attn_layer_norm", f"{ours}/attention/layer_norm", "gamma", "beta"
            )
            self.rename(
                found, f"{theirs}.encoder_attn.q_proj", f"{ours}/attention/linear_0", "weight", "bias"
            )
            self.join(found, f"{theirs}.encoder_attn", "kv", f"{ours}/attention/linear_1")
            self.rename(
                found, f"{theirs}.encoder_attn.out_proj", f"{ours}/attention/linear_2", "weight", "bias"
            )
        self.rename(found, f"{theirs}.final_layer_norm", f"{ours}/ffn/layer_norm", "gamma", "beta")
        self.rename(found, f"{theirs}.fc1", f"{ours}/ffn/linear_0", "weight", "bias")
        self.rename(found, f"{theirs}.fc2", f"{ours}/ffn/linear_1", "weight", "bias")

    def join(self, found, theirs, parts, ours):
        zeros = np.zeros(self.d_model, np.float16)
        found[f"{ours}/weight"] = np.vstack([self.arrays[f"{theirs}.{part}_proj.weight"] for part in parts])
        found[f"{ours}/bias"] = np.hstack(
            [self.arrays.get(f"{theirs}.{part}_proj.bias", zeros) for part in parts]
        )


CT2_TYPES = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}


def ctranslate2_name(name):
    raw = name.encode() + b"\0"
    return struct.pack("<H", len(raw)) + raw


def ctranslate2_file(arrays, version=6, spec="WhisperSpec", aliases=None):
    """Return the bytes of a CTranslate2 model of these arrays."""
    if aliases is None:
        aliases = {"decoder/projection/weight": "decoder/embeddings/weight"}
    content = [struct.pack("<I", version), ctranslate2_name(spec), struct.pack("<I", 3)]
    content.append(struct.pack("<I", len(arrays)))
    for name, array in arrays.items():
        shape = np.shape(array)
        content += [ctranslate2_name(name), struct.pack(f"<B{len(shape)}I", len(shape), *shape)]
        content += [struct.pack("<BI", CT2_TYPES[array.dtype.name], array.nbytes), array.tobytes()]
    content.append(struct.pack("<I", len(aliases)))
    content += [ctranslate2_name(alias) + ctranslate2_name(name) for alias, name in aliases.items()]
    return b"".join(content)


def write_bfloat16(path, arrays):
    """Write a safetensors file of bfloat16 values, cut off from float32: numpy has no such type."""
    header, data = {}, b""
    for name, array in arrays.items():
        raw = (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
        header[name] = {
            "dtype": "BF16",
            "shape": array.shape,
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


@pytest.fixture(scope="session")
def tiny_whisper():
    return TinyWhisper


@pytest.fixture(scope="session")
def ctranslate2_bytes():
    return ctranslate2_file


@pytest.fixture(scope="session")
def tokenizer_file():
    return write_tokenizer
