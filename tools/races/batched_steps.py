"""What one decoder pass over a row of each of B windows costs, beside one pass for each window.

    python tools/races/batched_steps.py AUDIO... [--batches 2,4]

Windows are decoded one by one first. Then B of them are decoded together, on the same tokens, by a graph
made of the parts of as2d's own, in which each window has its own keys and values; the logits are compared
bit for bit.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from contestants import Setting
from numpy.typing import NDArray

from as2d_cli.audio.log_mel import log_mel
from as2d_cli.audio.stream import open_audio
from as2d_cli.audio.windows import split
from as2d_cli.domain.types import Request
from as2d_cli.models import weights
from as2d_cli.system.paths import cache_root
from as2d_whisper import graph as parts
from as2d_whisper.checkpoint import Checkpoint, read_checkpoint
from as2d_whisper.convert import onnx_to_mnn
from as2d_whisper.layout import HEAD_SIZE
from as2d_whisper.mnn import Graph, Var, constant
from as2d_whisper.model import Cache, WhisperModel
from as2d_whisper.prompt import open_prompt
from as2d_whisper.rules import Rules

Floats = NDArray[np.float32]
_KEYS_STEP = 32
_MASKED = np.float32(-1e9)
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Decoded:
    """A window decoded by itself: what was cached before the first step, then token and logits of each."""

    audio: list[Var]
    cached: Floats
    tokens: list[int]
    logits: list[Floats]
    step_ms: list[float]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("audio", nargs="+", type=Path)
    parser.add_argument(
        "--batches", type=lambda text: [int(size) for size in text.split(",")], default=[2, 4, 8]
    )
    parser.add_argument("--model", default="whisper-base")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    setting = Setting(arguments.model, cache_root() / "peers", arguments.threads)
    model = WhisperModel(weights.ensure(setting.entry), arguments.threads, exact_rows=True)
    rules = Rules(model)
    pieces = (window for path in arguments.audio for window in split(open_audio(path).blocks()))
    windows = [
        _decoded(model, rules, log_mel(piece.samples, model.features))
        for piece in islice(pieces, max(arguments.batches))
    ]
    print(f"tokens: {[len(window.tokens) for window in windows]}")
    _show("one by one", [ms for window in windows for ms in window.step_ms], 1)
    with TemporaryDirectory() as folder:
        batched = _batched_graph(read_checkpoint(setting.checkpoint), Path(folder), arguments.threads)
        for size in arguments.batches:
            step_ms, same = _together(model, batched, windows[:size])
            _show(f"{size} together, {'same bits' if same else 'OTHER BITS'}", step_ms, size)


def _show(name: str, step_ms: Sequence[float], size: int) -> None:
    least, quarter, half = np.quantile(step_ms, [0, 0.25, 0.5])
    print(f"{name}: {least:.2f} / {quarter:.2f} / {half:.2f} ms a pass (least, quartile, median)", end="")
    print(f", {quarter / size:.2f} ms for each window")


def _decoded(model: WhisperModel, rules: Rules, features: Floats) -> Decoded:
    audio = model.encode(features)
    cache = Cache(model.facts.n_text_positions, model.cache_width)
    prompt = open_prompt(model, audio, cache, Request(language="en")).ids
    if cache.length < len(prompt) - 1:
        model.decode(audio, cache, prompt[cache.length : -1])
    found = Decoded(audio, cache.rows[: cache.length].copy(), [prompt[-1]], [], [])
    while len(found.tokens) < _LONGEST:
        began = time.perf_counter()
        rows = model.decode(audio, cache, found.tokens[-1:])
        logits = rows.logits.copy()
        token = int(rules.choose(rows.logits, None if found.logits else 0)[0])
        found.step_ms.append(1e3 * (time.perf_counter() - began))
        found.logits.append(logits[0])
        if token == model.tokenizer.end_id:
            break
        found.tokens.append(token)
    return found


def _together(model: WhisperModel, batched: Graph, windows: Sequence[Decoded]) -> tuple[list[float], bool]:
    """Feed the windows' tokens to the batched graph, those of ended windows as padding."""
    size = len(windows)
    audio = [
        constant(np.concatenate([window.audio[index].view() for window in windows], axis=1))
        for index in range(len(windows[0].audio))
    ]
    cache = np.zeros((size, model.facts.n_text_positions, model.cache_width), np.float32)
    start = len(windows[0].cached)
    for row, window in enumerate(windows):
        cache[row, :start] = window.cached
    step_ms, same = [], True
    for step in range(max(len(window.logits) for window in windows)):
        began = time.perf_counter()
        length = start + step
        past = -(-(length + 1) // _KEYS_STEP) * _KEYS_STEP - 1
        mask = np.full((size, 1, past + 1, 2), _MASKED, np.float32)
        mask[:, :, :length] = mask[:, :, past:] = 0
        tokens = [window.tokens[min(step, len(window.tokens) - 1)] for window in windows]
        x = model._embeddings[tokens].astype(np.float32) + model._positions[length]
        before = constant(np.ascontiguousarray(cache[:, :past]))
        all_live = constant(np.zeros((size, 1), np.float32))
        logits, present = batched.run(constant(x[None]), before, constant(mask), all_live, *audio)
        cache[:, length] = present.view()
        chosen = logits.view()[0]
        chosen.argmax(axis=1)
        step_ms.append(1e3 * (time.perf_counter() - began))
        live = [row for row, window in enumerate(windows) if step < len(window.logits)]
        same &= all(np.array_equal(chosen[row], windows[row].logits[step]) for row in live)
    return step_ms, same


def _batched_graph(checkpoint: Checkpoint, folder: Path, threads: int) -> Graph:
    """One row of each of B windows; as `build_decoder` but for the windows' own caches and audio."""
    graph, layers = parts._Graph(), checkpoint.n_layers("decoder")
    d, heads, length = checkpoint.d_model, checkpoint.n_heads, checkpoint.n_audio_positions
    x = graph.input("x", [1, "B", d])
    past = graph.input("past", ["B", "C", 2 * layers * d])
    mask = graph.input("mask", ["B", 1, "T", 2])
    live = graph.input("live", ["B", 1])
    present: list[str] = []
    audio: list[str] = []
    for index in range(layers):
        layer = f"decoder/layer_{index}"
        x, new = _self_attention(graph, x, checkpoint, layer, past=(past, 2 * index * d), mask=mask)
        present += new
        key = graph.input(f"key_{index}", [heads, "B", length, HEAD_SIZE])
        value = graph.input(f"value_{index}", [heads, "B", HEAD_SIZE, length])
        audio += [key, value]
        x, _ = parts._cross_attention(graph, x, checkpoint, layer, audio=(key, value), live=live)
        x = parts._feed_forward(graph, x, checkpoint, layer)
    x = graph.layer_norm(x, checkpoint, "decoder/layer_norm")
    projection = checkpoint["decoder/projection/weight"]
    graph.linear(x, projection, None, out=graph.output("logits", [1, "B", len(projection)]))
    rows = graph.op("Concat", *present, axis=2)
    graph.reshape(rows, [-1, 2 * layers * d], out=graph.output("present", ["B", 2 * layers * d]))
    graph.save(folder / "batched.onnx")
    onnx_to_mnn(folder / "batched.onnx", folder / "batched.mnn", weight_bits=8)
    return Graph(
        folder / "batched.mnn", ["x", "past", "mask", "live", *audio], ["logits", "present"], threads
    )


def _self_attention(
    graph: parts._Graph, x: str, checkpoint: Checkpoint, layer: str, *, past: tuple[str, int], mask: str
) -> tuple[str, list[str]]:
    """As in `graph`, with the query twice: the same bits need two columns."""
    d, heads, name = checkpoint.d_model, checkpoint.n_heads, f"{layer}/self_attention"
    y = graph.layer_norm(x, checkpoint, f"{name}/layer_norm")
    query = graph.reshape(
        parts._project(graph, y, checkpoint, f"{name}/linear_0", "query"), [-1, heads, HEAD_SIZE, 1]
    )
    query = graph.op("Concat", query, query, axis=3)
    new = [parts._project(graph, y, checkpoint, f"{name}/linear_0", kind) for kind in ("key", "value")]
    cache, start = past
    joined = []
    for rows, offset, order in ((new[0], start, parts.KEYS), (new[1], start + d, parts.VALUES_T)):
        old = graph.slice(cache, 2, offset, offset + d)
        both = graph.op("Concat", old, graph.reshape(rows, [-1, 1, d]), axis=1)
        joined.append(graph.transpose(graph.reshape(both, [0, 0, heads, HEAD_SIZE]), order))
    scores = graph.op("Add", graph.op("MatMul", joined[0], query), mask)  # (B, h, T, 2)
    attended = graph.op("MatMul", joined[1], graph.op("Softmax", scores, axis=2))
    attended = graph.reshape(graph.slice(attended, 3, 0, 1), [1, -1, d])
    return graph.op("Add", x, graph.linear(attended, *parts._linear(checkpoint, f"{name}/linear_1"))), new


if __name__ == "__main__":
    main()
