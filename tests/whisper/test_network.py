"""Converted tiny random Whispers equal Whisper written out in numpy, on every backend."""

import json
import math

import numpy as np
import pytest

from as2d_cli.decoding import EMPTY, Aligner, FixedBudget, decode
from as2d_cli.domain.errors import ModelError
from as2d_cli.domain.types import Request
from as2d_whisper.backends.openvino.runtime import data
from as2d_whisper.convert import convert
from as2d_whisper.drafter import WhisperDrafter
from as2d_whisper.model import WhisperModel
from as2d_whisper.target import WhisperTarget

LARGE_V3 = ("en", "zh", "de", "haw", "yue")  # the last one is what large-v3 added
TOLERANCE = 1e-3
erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x):
    """As Whisper was trained."""
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


def gelu_by_tanh(x):
    """The tanh approximation, which MNN computes whatever the graph asks for, and OpenVINO when asked."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


class Reference:
    """Whisper as the paper and openai/whisper `model.py` describe it, in float64."""

    def __init__(self, tiny, gelu=gelu_by_tanh):
        self.gelu = gelu
        self.weights = {name: array.astype(np.float64) for name, array in tiny.arrays.items()}
        self.n_heads, self.n_layers = tiny.n_heads, tiny.n_layers

    def linear(self, x, name):
        return x @ self.weights[f"{name}.weight"].T + self.weights.get(f"{name}.bias", 0)

    def norm(self, x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def convolve(self, x, name, stride):
        """x has shape (channels, frames); width 3, padding 1."""
        padded = np.pad(x, [(0, 0), (1, 1)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=1)[:, ::stride]
        bias = self.weights[f"{name}.bias"][:, None]
        return self.gelu(np.einsum("oik,itk->ot", self.weights[f"{name}.weight"], windows) + bias)

    def heads(self, x):
        return x.reshape(len(x), self.n_heads, -1).transpose(1, 0, 2)

    def attend(self, x, memory, name, mask=0):
        """Return the output and the probabilities, shape (heads, queries, keys)."""
        q, k, v = (
            self.heads(self.linear(source, f"{name}.{part}_proj"))
            for source, part in ((x, "q"), (memory, "k"), (memory, "v"))
        )
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1]) + mask
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        return self.linear((scores @ v).transpose(1, 0, 2).reshape(x.shape), f"{name}.out_proj"), scores

    def feed_forward(self, x, name):
        y = self.linear(self.norm(x, f"{name}.final_layer_norm"), f"{name}.fc1")
        return x + self.linear(self.gelu(y), f"{name}.fc2")

    def encode(self, mel):
        x = self.convolve(mel.astype(np.float64), "model.encoder.conv1", 1)
        x = self.convolve(x, "model.encoder.conv2", 2).T
        x = x + self.weights["model.encoder.embed_positions.weight"][: len(x)]
        for i in range(self.n_layers):
            name = f"model.encoder.layers.{i}"
            y = self.norm(x, f"{name}.self_attn_layer_norm")
            x = self.feed_forward(x + self.attend(y, y, f"{name}.self_attn")[0], name)
        return self.norm(x, "model.encoder.layer_norm")

    def decode(self, audio, tokens):
        """Return the logits (tokens, vocab) and the cross-attention (layers, heads, tokens, frames)."""
        embeddings = self.weights["model.decoder.embed_tokens.weight"]
        x = embeddings[tokens] + self.weights["model.decoder.embed_positions.weight"][: len(tokens)]
        mask = np.where(np.tri(len(tokens), dtype=bool), 0, -np.inf)
        attention = []
        for i in range(self.n_layers):
            name = f"model.decoder.layers.{i}"
            y = self.norm(x, f"{name}.self_attn_layer_norm")
            x = x + self.attend(y, y, f"{name}.self_attn", mask)[0]
            y = self.norm(x, f"{name}.encoder_attn_layer_norm")
            out, probabilities = self.attend(y, audio, f"{name}.encoder_attn")
            attention.append(probabilities)
            x = self.feed_forward(x + out, name)
        return self.norm(x, "model.decoder.layer_norm") @ embeddings.T, np.array(attention)


KINDS = {
    "80 mels": {"n_mels": 80, "languages": ("en", "zh", "de")},
    "128 mels as large-v3": {"n_mels": 128, "n_heads": 2, "languages": LARGE_V3},
    "English-only": {"n_mels": 80, "n_heads": 2, "n_layers": 1, "seed": 3},
}


FLOAT32 = {"encoder_bits": 32, "decoder_bits": 32, "precision": "f32"}


class Converted:
    """A tiny model, its reference, a window, and where its converted form is."""

    def __init__(self, tiny, folder, *, options=FLOAT32, **generation):
        self.tiny, self.reference = tiny, Reference(tiny)
        self.ids = tiny.write_safetensors(folder / "source", **generation)
        self.folder = folder / "model"
        self.folder.mkdir()
        convert(folder / "source", self.folder, options)
        self.mel = (
            np.random.default_rng(9).standard_normal((tiny.n_mels, 2 * tiny.n_audio)).astype(np.float32)
        )
        self.heard = self.reference.encode(self.mel)


@pytest.fixture(scope="module", params=["mnn", "openvino"])
def backend(request):
    return {"backend": request.param}


@pytest.fixture(scope="module", params=KINDS)
def converted(request, backend, tmp_path_factory, tiny_whisper):
    folder = tmp_path_factory.mktemp("tiny")
    return Converted(
        tiny_whisper(**KINDS[request.param]),
        folder,
        options={**FLOAT32, **backend},
        is_multilingual=request.param != "English-only",
    )


def assert_close(ours, expected):
    assert ours.shape == expected.shape
    assert np.abs(ours - expected).max() < TOLERANCE


def encoded(audio):
    """Return keys and values of each layer in turn, shape (heads, frames, 64), in whatever form they are."""
    if isinstance(audio, list):
        arrays = [item.copy()[:, 0] for item in audio]
        return [array.transpose(0, 2, 1) if index % 2 else array for index, array in enumerate(arrays)]
    return [data(tensor)[0] for tensor in audio.encoded.values()]


@pytest.mark.parametrize("frames", [100, 32])
def test_the_encoder_gives_the_keys_and_values_of_the_reference(converted, frames):
    model, reference = WhisperModel(converted.folder, 1, exact_rows=True), converted.reference
    outputs = encoded(model.encode(converted.mel[:, :frames]))
    heard = reference.encode(converted.mel[:, :frames])
    for i in range(converted.tiny.n_layers):
        name = f"model.decoder.layers.{i}.encoder_attn"
        key, value = (reference.heads(reference.linear(heard, f"{name}.{p}_proj")) for p in "kv")
        assert_close(outputs[2 * i], key)
        assert_close(outputs[2 * i + 1], value)


def test_the_approximation_of_gelu_stays_near_the_exact_one(converted):
    exact = Reference(converted.tiny, gelu)
    tokens = np.arange(60)
    logits, _ = converted.reference.decode(converted.heard, tokens)
    expected, _ = exact.decode(exact.encode(converted.mel), tokens)
    assert np.abs(logits - expected).max() < 0.02 < 0.05 * logits.std()


@pytest.mark.parametrize("exact_rows", [True, False])
def test_the_decoder_gives_the_logits_of_the_reference_over_the_whole_context(converted, exact_rows):
    model = WhisperModel(converted.folder, 1, exact_rows=exact_rows)
    tokens = np.random.default_rng(5).integers(0, converted.tiny.vocab_size, 448)
    logits, _ = converted.reference.decode(converted.heard, tokens)
    assert logits.std() > 0.5  # a reference that says something
    audio, cache, at = model.encode(converted.mel), model.new_cache(), 0
    for rows in (1, 1, 2, 3, 7, *[24] * 18, 1, 1):
        result = model.decode(audio, cache, tokens[at : at + rows].tolist()).logits
        at += rows
        assert_close(result[-rows:], logits[at - len(result) : at])
        assert len(result) == rows or not exact_rows
    assert at == cache.length == 448


def test_the_alignment_is_the_mean_attention_of_the_upper_half_of_the_layers_by_default(converted):
    model = WhisperModel(converted.folder, 1, exact_rows=True)
    tokens = [converted.ids["<|startoftranscript|>"], 40, 50, 60]
    _, attention = converted.reference.decode(converted.heard, tokens)
    upper = attention[converted.tiny.n_layers // 2 :].mean(axis=(0, 1))
    cache = model.new_cache()
    rows = model.decode(model.encode(converted.mel), cache, tokens).alignment.copy()
    assert np.abs(rows - upper).max() < 1e-4
    assert np.allclose(rows.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("listed", "used"),
    [
        ([[1, 0], [0, 1]], [(1, 0), (0, 1)]),
        ([[1, 1]], [(1, 1)]),
        ([[2, 0], [1, 1]], [(1, 0), (1, 1)]),  # a teacher's list: this model has no layer 2
        ([[1, 20]], [(1, 0), (1, 1)]),
        ([], [(1, 0), (1, 1)]),
        (None, [(1, 0), (1, 1)]),
    ],
)
def test_listed_alignment_heads_are_used_if_the_model_has_them(tmp_path, tiny_whisper, listed, used):
    """Distilled models often have no list, or their teacher's."""
    converted = Converted(tiny_whisper(n_heads=2), tmp_path, alignment_heads=listed)
    model = WhisperModel(converted.folder, 1, exact_rows=True)
    _, attention = converted.reference.decode(converted.heard, [7, 8])
    expected = np.mean([attention[layer, head] for layer, head in used], axis=0)
    rows = model.decode(model.encode(converted.mel), model.new_cache(), [7, 8]).alignment
    assert np.abs(rows - expected).max() < 1e-4


@pytest.mark.parametrize("listed", ["all", [1, 2], [[1]], {"a": 1}, [["x", 0]]])
def test_a_senseless_list_of_alignment_heads_is_an_error(tmp_path, tiny_whisper, listed):
    with pytest.raises(ModelError, match="alignment_heads"):
        Converted(tiny_whisper(), tmp_path, alignment_heads=listed)


def greedy(converted, prompt, banned, banned_first, limit):
    """Return the reference's own text after `prompt`."""
    tokens, end = list(prompt), converted.ids["<|endoftext|>"]
    while len(tokens) - len(prompt) < limit and (len(tokens) == len(prompt) or tokens[-1] != end):
        logits, _ = converted.reference.decode(converted.heard, tokens)
        row = logits[-1].copy()
        row[end + 1 :] = -np.inf
        row[list(banned)] = -np.inf
        if len(tokens) == len(prompt):
            row[list(banned_first)] = -np.inf
        tokens.append(int(row.argmax()))
    return tokens[len(prompt) :]


def test_a_session_writes_the_text_of_the_reference(converted):
    target = WhisperTarget(converted.folder, threads=1)
    session = target.open(converted.mel, Request(language="en", word_times=True))
    steps = decode(session, EMPTY, Aligner(), FixedBudget(0), end_id=target.spec.end_id)
    tokens = [token for _, step in zip(range(30), steps, strict=False) for token in step.tokens]
    assert tokens == greedy(converted, session.prompt, [], [2], len(tokens))
    words = session.words([token for token in tokens if token != target.spec.end_id], 1.0)
    assert words[-1].end_s <= 1.0


def test_a_drafter_writes_the_same_text(converted):
    drafter = WhisperDrafter(converted.folder, threads=1)
    draft = drafter.draft(converted.mel, Request(language="en"))
    tokens = [token.id for _, token in zip(range(12), draft, strict=False)]
    prompt = WhisperTarget(converted.folder, threads=1).open(converted.mel, Request(language="en")).prompt
    end = converted.ids["<|endoftext|>"]
    assert [end if token < 0 else token for token in tokens] == greedy(
        converted, prompt, [], [2], len(tokens)
    )


def test_the_prompt_is_made_of_the_models_own_special_tokens(converted):
    target = WhisperTarget(converted.folder, threads=1)
    ids, languages = converted.ids, converted.tiny.languages
    if not target._model.facts.is_multilingual:
        assert target.spec.languages == ("en",)
        assert target.spec.tasks == WhisperDrafter(converted.folder, threads=1).spec.tasks == ("transcribe",)
        prompt = target.open(converted.mel, Request()).prompt
        assert prompt == (ids["<|startoftranscript|>"], ids["<|notimestamps|>"])
        with pytest.raises(ModelError, match="English-only"):
            target.open(converted.mel, Request(task="translate"))
        return
    assert target.spec.languages == languages
    assert target.spec.tasks == ("transcribe", "translate")
    for language in languages:
        session = target.open(converted.mel, Request(task="translate", language=language))
        task = "transcribe" if language == "en" else "translate"
        names = ("startoftranscript", language, task, "notimestamps")
        assert session.prompt == tuple(ids[f"<|{name}|>"] for name in names)
        most = (
            224 if task == "translate" else 444
        )  # half the context for a translation, as the reference has it
        assert session.max_tokens == most
    assert target.spec.end_id == ids["<|endoftext|>"]


def test_an_unknown_language_is_an_error_that_names_it(converted):
    target = WhisperTarget(converted.folder, threads=1)
    with pytest.raises(ModelError, match="'xx'"):
        target.open(converted.mel, Request(language="xx"))


def test_the_language_is_the_likeliest_of_the_models_languages(converted):
    target = WhisperTarget(converted.folder, threads=1)
    session = target.open(converted.mel, Request())
    languages = target.spec.languages
    logits, _ = converted.reference.decode(converted.heard, [converted.ids["<|startoftranscript|>"]])
    scores = [logits[0, converted.ids[f"<|{language}|>"]] for language in languages]
    assert session.language == languages[int(np.argmax(scores))]


def test_both_source_formats_convert_to_the_same_model(tmp_path, tiny_whisper):
    tiny = tiny_whisper()
    converted = Converted(tiny, tmp_path)
    tiny.write_ctranslate2(tmp_path / "other")
    (tmp_path / "other_model").mkdir()
    convert(tmp_path / "other", tmp_path / "other_model", FLOAT32)
    rows = []
    for folder in (converted.folder, tmp_path / "other_model"):
        model = WhisperModel(folder, 1, exact_rows=True)
        audio, cache = model.encode(converted.mel), model.new_cache()
        rows.append(model.decode(audio, cache, [3, 4, 5]).logits.copy())
    assert np.array_equal(*rows)


def test_eight_bit_weights_stay_near_the_reference(tmp_path, tiny_whisper, backend):
    converted = Converted(tiny_whisper(n_heads=2), tmp_path, options={**backend, "precision": "f32"})
    model = WhisperModel(converted.folder, 1, exact_rows=True)
    tokens = list(range(40, 64))
    logits, _ = converted.reference.decode(converted.heard, tokens)
    rows = model.decode(model.encode(converted.mel), model.new_cache(), tokens).logits
    error = np.abs(rows - logits).max()
    assert TOLERANCE < error < 0.3 * logits.std()


def test_the_vocabulary_decides_the_kind_of_a_model_that_does_not_say_it(tmp_path, tiny_whisper):
    """51,865 tokens and more are multilingual; CTranslate2's files say nothing."""
    kinds = []
    for rows in (51864, 51865, 51866):
        tiny = tiny_whisper(n_layers=1)
        tiny.arrays["model.decoder.embed_tokens.weight"] = np.zeros((rows, 64), np.float16)
        folder = tmp_path / str(rows)
        folder.mkdir()
        tiny.write_ctranslate2(folder / "source")
        (folder / "model").mkdir()
        convert(folder / "source", folder / "model", {"decoder_bits": 8})
        facts = json.loads((folder / "model" / "facts.json").read_text())
        assert facts["vocab_size"] == rows
        kinds.append(facts["is_multilingual"])
    assert kinds == [False, True, True]


def test_heads_of_another_size_are_refused(tmp_path, tiny_whisper):
    tiny = tiny_whisper(n_heads=2)
    tiny.write_safetensors(tmp_path / "source")
    (tmp_path / "source" / "config.json").write_text('{"decoder_attention_heads": 4}')
    with pytest.raises(ModelError, match="heads of 32 values; expected 64"):
        convert(tmp_path / "source", tmp_path, {})


@pytest.mark.parametrize("bits", [7, "8", None, True])
def test_an_impossible_precision_is_refused(tmp_path, tiny_whisper, backend, bits):
    tiny_whisper().write_safetensors(tmp_path / "source")
    possible = {"mnn": r"\(2, 4, 8, 16, 32\)", "openvino": r"\(8, 16, 32\)"}[backend["backend"]]
    with pytest.raises(ModelError, match=f"decoder_bits is .*; expected one of {possible}"):
        convert(tmp_path / "source", tmp_path, {**backend, "decoder_bits": bits})


def test_features_of_another_shape_are_refused(converted):
    model = WhisperModel(converted.folder, 1, exact_rows=True)
    with pytest.raises(ModelError, match=r"features of shape \(80, 3000\), expected"):
        model.encode(np.zeros((80, 3000), np.float32))


def test_a_missing_or_broken_graph_is_an_error_that_names_it(tmp_path, tiny_whisper, backend):
    folder = Converted(tiny_whisper(n_layers=1), tmp_path, options=backend).folder
    graph = next(path for path in (folder / "decoder.mnn", folder / "decoder.xml") if path.exists())
    whole = graph.read_bytes()
    graph.unlink()
    with pytest.raises(ModelError, match=rf"{graph.name}: missing"):
        WhisperModel(folder, 1, exact_rows=True)
    graph.write_bytes(whole[:100])
    with pytest.raises(ModelError, match=graph.name):
        WhisperModel(folder, 1, exact_rows=True)
