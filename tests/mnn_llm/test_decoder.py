"""A tiny random decoder, written, loaded and run: against a numpy forward pass, and against itself."""

import json
import shutil
from functools import partial

import numpy as np
import pytest

from as2d_cli.domain.errors import ModelError
from as2d_mnn_llm.engine import Engine
from as2d_mnn_llm.exactness import FILE, safe_rows
from as2d_mnn_llm.export import decoder
from as2d_mnn_llm.export.decoder import decoder_weights, write_decoder
from as2d_mnn_llm.export.graph import DecoderShape, build_decoder
from as2d_mnn_llm.export.records import QuantisedLinear, quantise
from as2d_mnn_llm.session import LlmDraftSession, LlmSession

SHAPES = {
    "llama": DecoderShape("llama", 2, 64, 4, 2, 16, 128, 300, 1e4, 1e-6, True),
    "qwen2": DecoderShape("qwen2", 2, 64, 4, 2, 16, 128, 300, 1e6, 1e-6, False),
    "qwen3": DecoderShape("qwen3", 2, 64, 4, 2, 32, 128, 300, 1e6, 1e-6, True),
}


def random_weights(shape):
    rng = np.random.default_rng(0)
    matrices, norms = decoder_weights(shape)
    weights = {name: (1 + 0.2 * rng.standard_normal(size)).astype(np.float32) for name, size in norms.items()}
    for name, size in matrices.items():
        bits = 8 if name in {"head", "embedding"} else 4
        spread = 1.0 if name == "embedding" else 0.3
        part = quantise(spread * rng.standard_normal(size, dtype=np.float32), bits, 32)
        if shape.architecture == "qwen2" and name.endswith((".q", ".k", ".v")):
            bias = rng.standard_normal(size[0], dtype=np.float32)
            part = QuantisedLinear(bits, 32, part.codes, part.scale, part.minimum, bias)
        weights[name] = part
    return weights


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    folders = {}
    for name, shape in SHAPES.items():
        folders[name] = tmp_path_factory.mktemp(name)
        weights = random_weights(shape)
        write_decoder(shape, lambda wanted, weights=weights: weights[wanted], folders[name])
    return folders


@pytest.fixture(scope="module")
def quantised(exports):
    """At memory low, on a graph with shared dimensions of a real model's kind."""
    folder = exports["qwen2"]
    safe = safe_rows(partial(Engine, folder, 1), folder, "1 thread")
    return Engine(folder, 1), safe


class Numpy:
    """The same decoder in float64."""

    def __init__(self, shape):
        self.shape = shape
        self.weights = random_weights(shape)

    def linear(self, name, x):
        part = self.weights[name]
        return x @ part.values().T.astype(np.float64) + (0 if part.bias is None else part.bias)

    def norm(self, name, x):
        mean = (x**2).mean(axis=-1, keepdims=True)
        return x / np.sqrt(mean + self.shape.norm_eps) * self.weights[name]

    def rotate(self, x):
        half = self.shape.head_dim // 2
        angles = np.arange(len(x))[:, None] * self.shape.rope_theta ** (-np.arange(half) / half)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        one, two = x[..., :half], x[..., half:]
        return np.concatenate((one * cos - two * sin, two * cos + one * sin), axis=-1)

    def attention(self, layer, x):
        shape, rows = self.shape, len(x)
        q, k, v = (self.linear(f"{layer}.{name}", x).reshape(rows, -1, shape.head_dim) for name in "qkv")
        if shape.architecture == "qwen3":
            q, k = self.norm(f"{layer}.q_norm", q), self.norm(f"{layer}.k_norm", k)
        q, k = self.rotate(q), self.rotate(k)
        k, v = (np.repeat(part, shape.heads // shape.kv_heads, axis=1) for part in (k, v))
        scores = np.einsum("nhd,mhd->hnm", q, k) / np.sqrt(shape.head_dim)
        scores = np.where(np.tri(rows, dtype=bool), scores, -np.inf)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return self.linear(f"{layer}.o", np.einsum("hnm,mhd->nhd", shares, v).reshape(rows, -1))

    def logits(self, tokens):
        table = self.weights["head" if self.shape.tied else "embedding"].values()
        x = table[tokens].astype(np.float64)
        for layer in range(self.shape.layers):
            x = x + self.attention(layer, self.norm(f"{layer}.input_norm", x))
            y = self.norm(f"{layer}.post_norm", x)
            gate = self.linear(f"{layer}.gate", y)
            inner = gate / (1 + np.exp(-gate)) * self.linear(f"{layer}.up", y)
            x = x + self.linear(f"{layer}.down", inner)
        return self.linear("head", self.norm("final_norm", x))


@pytest.mark.parametrize("name", SHAPES)
def test_a_decoder_gives_the_logits_of_the_same_forward_pass_in_numpy(exports, name):
    tokens = np.random.default_rng(1).integers(0, 300, 30).tolist()
    expected = Numpy(SHAPES[name]).logits(tokens)
    engine = Engine(exports[name], 1, memory="high")
    first = engine.prefill(tokens[:10])
    assert first == expected[9].argmax()
    assert np.abs(engine.logits()[0] - expected[9]).max() < 1e-4
    ids = engine.forward(tokens[10:])
    assert np.abs(engine.logits() - expected[10:]).max() < 1e-4
    assert ids.tolist() == expected[10:].argmax(axis=1).tolist()


def test_one_row_alone_is_not_safe_with_quantised_weights_and_some_counts_are(quantised):
    _, safe = quantised
    assert 1 not in safe
    assert {2, 4, 8} <= set(safe)


def test_which_rows_are_safe_is_kept_beside_the_model(quantised):
    engine, safe = quantised
    assert (engine.folder / FILE).is_file()
    assert safe_rows(None, engine.folder, "1 thread") == safe


def test_row_counts_that_were_changed_are_found_anew(quantised):
    engine, safe = quantised
    kept = engine.folder / FILE
    whole = kept.read_bytes()
    kept.write_bytes(whole.replace(b"[", b"[1, ", 1))
    try:
        assert safe_rows(partial(Engine, engine.folder, 1), engine.folder, "1 thread") == safe
        assert kept.read_bytes() == whole
    finally:
        kept.write_bytes(whole)


def last_row_only(shape, parts):
    """The graph as llmexport of MNN 3.0 made it: no `logits_index`, and the last row's logits as a vector."""
    graph = build_decoder(shape, parts)
    ops = {op["name"]: op for op in graph.ops}
    last = graph.integers(-1)
    graph.ops.insert(0, graph.ops.pop())
    graph.ops.remove(ops["logits_index"])
    slices = [op for op in graph.ops if op["type"] == "StridedSlice"]
    slices[-1]["inputIndexes"][1] = last
    ops["logits"]["main"]["dims"] = [shape.vocab]
    return graph


def test_a_graph_that_gives_the_last_rows_logits_only_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(decoder, "build_decoder", last_row_only)
    weights = random_weights(SHAPES["llama"])
    write_decoder(SHAPES["llama"], lambda name: weights[name], tmp_path)
    with pytest.raises(ModelError, match=r"gives logits of shape \(300,\)") as told:
        safe_rows(partial(Engine, tmp_path, 1), tmp_path, "1 thread")
    assert "since MNN 3.1" in told.value.hint


def test_a_model_that_crashes_mnn_is_an_error_and_costs_no_process_of_ours(exports, tmp_path):
    shutil.copytree(exports["llama"], tmp_path / "odd")
    settings = json.loads((tmp_path / "odd" / "llm_config.json").read_text())
    (tmp_path / "odd" / "llm_config.json").write_text(json.dumps({**settings, "hidden_size": 1 << 20}))
    with pytest.raises(ModelError, match="MNN crashes when it runs the model: it was ended by SIG"):
        safe_rows(partial(Engine, tmp_path / "odd", 1), tmp_path / "odd", "1 thread")


def test_nothing_that_mnn_says_of_new_numbers_of_rows_is_shown(quantised, capfd):
    engine, safe = quantised
    assert safe_rows(partial(Engine, engine.folder, 1), engine.folder, "found anew") == safe
    assert "".join(capfd.readouterr()) == ""


def test_greedy_tokens_are_the_same_one_by_one_and_in_any_rounds_of_right_and_wrong_drafts(quantised):
    engine, safe = quantised
    prompt = np.random.default_rng(2).integers(0, 300, 20).tolist()
    plain = [prompt[-1]]
    session = LlmSession(engine, prompt, 100, safe)
    while len(plain) <= 60:
        plain.append(int(session.forward([plain[-1]])[0]))
    rng = np.random.default_rng(3)
    session = LlmSession(engine, prompt, 100, safe)
    done = 0
    while done < 30:
        right, wrong = int(rng.integers(0, 30 - done)), int(rng.integers(0, 5))
        decided = session.forward(plain[done : done + 1 + right] + rng.integers(0, 300, wrong).tolist())
        assert decided[: right + 1].tolist() == plain[done + 1 : done + 2 + right]
        done += right + 1
        session.rollback(len(prompt) - 1 + done)
        assert session.length == len(prompt) - 1 + done


def test_a_rollback_before_an_earlier_rollback_counts(quantised):
    engine, safe = quantised
    session = LlmSession(engine, list(range(20)), 100, safe)
    expected = session.forward([7, 8, 9]).tolist()
    session.rollback(21)
    session.rollback(19)
    assert session.forward([7, 8, 9]).tolist() == expected


def test_a_draft_session_tells_the_next_token_and_how_sure_it_is(exports):
    engine = Engine(exports["llama"], 1, memory="high")
    session = LlmDraftSession(engine, [1, 2, 3], 10)
    logits = Numpy(SHAPES["llama"]).logits([1, 2, 3])[-1]
    token = session.forward([3])
    assert token.id == logits.argmax()
    shares = np.exp(logits - logits.max())
    assert token.probability == pytest.approx(1 / shares.sum(), rel=1e-3)
    session = LlmDraftSession(engine, [1, 2, 3], 10, ends=[token.id])
    assert session.forward([3]).id == -1


def test_a_session_that_lost_its_cache_says_so(quantised):
    engine, safe = quantised
    session = LlmSession(engine, [1, 2], 10, safe)
    LlmSession(engine, [3, 4], 10, safe)
    with pytest.raises(ModelError, match="another session"):
        session.forward([2])


@pytest.mark.parametrize("name", ["config.json", "llm_config.json", "llm.mnn", "llm.mnn.weight"])
def test_a_missing_file_is_named(exports, tmp_path, name):
    for file in exports["llama"].iterdir():
        if file.name != name:
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(ModelError, match=name):
        Engine(tmp_path, 1)


def test_a_matrix_in_pieces_is_the_matrix(exports, tmp_path):
    shape, weights = SHAPES["llama"], random_weights(SHAPES["llama"])

    def in_pieces(name):
        whole = weights[name]
        if not isinstance(whole, QuantisedLinear):
            return whole
        return (
            QuantisedLinear(
                whole.bits,
                32,
                whole.codes[at : at + 48],
                whole.scale[at : at + 48],
                whole.minimum[at : at + 48],
            )
            for at in range(0, len(whole.codes), 48)
        )

    write_decoder(shape, in_pieces, tmp_path)
    for name in ("llm.mnn.weight", "llm_config.json"):
        assert (tmp_path / name).read_bytes() == (exports["llama"] / name).read_bytes()


def test_weights_that_do_not_fit_are_refused(tmp_path):
    weights = random_weights(SHAPES["llama"])
    weights["1.up"] = quantise(np.zeros((100, 64), np.float32), 4, 32)
    with pytest.raises(ModelError, match="100 rows"):
        write_decoder(SHAPES["llama"], lambda name: weights[name], tmp_path)
    with pytest.raises(ModelError, match="gemma"):
        DecoderShape("gemma", 2, 64, 4, 2, 16, 128, 300, 1e4, 1e-6, True)
