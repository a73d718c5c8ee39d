"""Audio language models on stand-ins: random models of the same architectures, exported for MNN.

What is compared with is PyTorch's answer at the time of the export; tests/stand_ins has the scripts.
"""

import json
import random
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import soundfile

from as2d_cli.audio.log_mel import heard_frames, log_mel
from as2d_cli.decoding import EMPTY, Aligner, FixedBudget, decode
from as2d_cli.decoding.protocols import END
from as2d_cli.domain.errors import ModelError, RequestError
from as2d_cli.domain.types import Request
from as2d_mnn_llm.audio import qwen2_5_omni, qwen2_audio, qwen3_asr
from as2d_mnn_llm.audio.drafter import AudioDrafter
from as2d_mnn_llm.audio.family import instruction
from as2d_mnn_llm.audio.model import AudioModel, family_of, hears
from as2d_mnn_llm.audio.spliced import SplicedEngine
from as2d_mnn_llm.audio.target import AudioTarget
from as2d_mnn_llm.checkpoints import convert as checkpoints
from as2d_mnn_llm.checkpoints.qwen3_asr import convert
from as2d_mnn_llm.engine import MAX_ROWS, Engine
from as2d_mnn_llm.hub_tokenizer import load_hub_tokenizer, take_tokenizer

DATA = Path(__file__).parents[2] / "data"
LENGTHS = (1.0, 8.0, 10.0, 11.0, 17.52, 29.995, 30.0)
SOUND_TOKEN = {"qwen2_audio": "<|AUDIO|>", "qwen2_5_omni": "<|AUDIO|>", "qwen3_asr": "<|audio_pad|>"}
FAMILIES = list(SOUND_TOKEN)
SPECS = {one.FAMILY.model_type: one.FAMILY.features for one in (qwen2_audio, qwen2_5_omni, qwen3_asr)}
WAVE, _ = soundfile.read(DATA / "jfk.flac", dtype="float32")


def features(seconds, name="qwen2_audio"):
    wave = np.tile(WAVE, 3)
    return log_mel(wave[: round(seconds * 16000)], SPECS[name])


def test_a_translation_is_asked_for_in_the_language_to_write():
    request = Request("translate", "fr", to="de")
    assert instruction(request).startswith("Translate the French speech into German.")
    assert instruction(Request("translate")).startswith("Translate the speech into English.")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Copies: what is learned of safe row counts is kept beside the model. Qwen3-ASR's is converted here."""
    root = tmp_path_factory.mktemp("stand_ins")
    for name in FAMILIES[:2]:
        shutil.copytree(DATA / "stand_ins" / name, root / name)
    (root / "qwen3_asr").mkdir()
    convert(DATA / "stand_ins" / "qwen3_asr", root / "qwen3_asr", 8)
    return {name: root / name for name in FAMILIES}


@pytest.fixture(scope="module")
def targets(folders):
    return {name: AudioTarget(folder, 1) for name, folder in folders.items()}


def references(name):
    cases = json.loads((DATA / "stand_ins" / name / "reference.json").read_text())
    return [(case, Request(**case["request"])) for case in cases]


def plain(session, limit):
    """Greedy tokens, one by one."""
    tokens = [session.prompt[-1]]
    while len(tokens) <= limit:
        tokens.append(int(session.forward(tokens[-1:])[0]))
    return tokens[1:]


class Replayed:
    """A finished draft."""

    complete = True

    def __init__(self, tokens):
        self.tokens = tokens

    def snapshot(self):
        return len(self.tokens)

    def ids(self, start, stop):
        return self.tokens[start:stop]

    def advance(self, cursor):
        pass

    def cancel(self):
        pass


def decoded(target, session, draft, budget, limit=60):
    """Committed tokens and how many of the draft's were accepted."""
    tokens, accepted = [], 0
    for step in decode(session, draft, Aligner("hybrid"), FixedBudget(budget), end_id=target.spec.end_id):
        tokens += step.tokens
        accepted += step.accepted
        if len(tokens) >= limit:
            break
    return tokens[:limit], accepted


def reference_array(name, key):
    with np.load(DATA / "stand_ins" / name / "reference.npz") as stored:
        return stored[key].astype(np.float32)


@pytest.mark.parametrize("seconds", LENGTHS)
@pytest.mark.parametrize("name", FAMILIES)
def test_features_are_those_of_the_familys_own_processor_to_the_last_frame(name, seconds):
    frames, last = (reference_array(name, f"{key} {seconds}") for key in ("frames", "last"))
    found = features(seconds, name)
    assert heard_frames(found) == frames
    # stored as float16, whose rounding alone is up to 5e-4 here
    assert np.abs(found[:, int(frames) - 8 : int(frames)] - last).max() < 1e-3


@pytest.mark.parametrize("name", FAMILIES)
def test_sound_is_encoded_as_by_pytorch(folders, name):
    reference = reference_array(name, "embeddings")
    embeddings = family_of(folders[name]).load_encoder(folders[name], 1)(features(10.0, name))
    assert embeddings.shape == reference.shape
    # Qwen2-Audio's last one or two: PyTorch's convolutions see silence behind the audio, these see its end
    assert np.abs(embeddings - reference)[:-2].max() < 0.02 * reference.std()


@pytest.mark.parametrize("name", FAMILIES)
def test_prompts_and_tokens_are_those_of_pytorch(folders, name):
    target = AudioTarget(folders[name], 1, "high")  # low rounds activations, which PyTorch does not
    added = json.loads((folders[name] / "tokenizer.json").read_text())["added_tokens"]
    sound = next(token["id"] for token in added if token["content"] == SOUND_TOKEN[name])
    for case, request in references(name):
        session = target.open(features(case["seconds"], name), request)
        ids = [sound if token >= target.spec.vocab_size else token for token in session.prompt]
        length = len(case["prompt"])
        assert ids[:length] == case["prompt"]
        said = ids[length:]  # of the language
        assert said + plain(session, len(case["tokens"]) - len(said)) == case["tokens"]


LINES = {"bos": "", "system_prompt_template": "%s", "user_prompt_template": "%s", "key_value_shape": []}
EARLIER = {
    "3.1.4": (("model_type", "is_mrope", "attention_type"), LINES),
    "3.3.0": (("model_type", "is_mrope"), LINES),
    "3.3.1": (("is_mrope",), {}),
}
"""By release of MNN: what llmexport did not yet write into llm_config.json, and what it still wrote."""


@pytest.mark.parametrize("release", EARLIER)
@pytest.mark.parametrize("name", FAMILIES[:2])
def test_an_export_of_an_earlier_release_is_taken_for_what_it_is(folders, tmp_path, name, release):
    source = Path(shutil.copytree(folders[name], tmp_path / "source"))
    settings = json.loads((source / "llm_config.json").read_text())
    absent, present = EARLIER[release]
    kept = {key: value for key, value in settings.items() if key not in absent} | present
    (source / "llm_config.json").write_text(json.dumps(kept))
    content = json.loads((source / "tokenizer.json").read_text())
    added = {token["content"]: token["id"] for token in content["added_tokens"]}
    write_mnn_text(source / "text", content, added)
    shutil.move(source / "text" / "tokenizer.txt", source / "tokenizer.txt")
    (source / "tokenizer.json").unlink()
    (tmp_path / "made").mkdir()
    checkpoints.convert({}, source, tmp_path / "made")
    assert hears(tmp_path / "made")
    for case, request in references(name)[:3]:
        target = AudioTarget(tmp_path / "made", 1, "high")
        session = target.open(features(case["seconds"], name), request)
        assert plain(session, len(case["tokens"])) == case["tokens"]


@pytest.mark.parametrize("name", FAMILIES)
def test_as_many_rows_as_a_pass_takes_equal_one_less_and_one(folders, name):
    engine = AudioModel(folders[name], 1, "high").engine
    tokens = np.random.default_rng(0).integers(0, 250, 8 + MAX_ROWS).tolist()

    def logits(*passes):
        engine.reset()
        engine.prefill(tokens[:8])
        found, at = [], 8
        for rows in passes:
            engine.forward(tokens[at : at + rows])
            found.append(engine.logits())
            at += rows
        return np.concatenate(found)

    together = logits(MAX_ROWS)
    for parts in ((MAX_ROWS - 1, 1), (1,) * MAX_ROWS):
        assert np.abs(logits(*parts) - together).max() < 1e-4 * together.std()


def test_a_prompt_of_any_length_is_read_in_the_right_places(folders):
    """MNN 3.6.1 leaves two of three rows of positions alone in a pass of a certain length."""
    engine = AudioModel(folders["qwen2_5_omni"], 1, "high").engine
    tokens = np.random.default_rng(0).integers(0, 250, 40).tolist()

    def logits(rows):
        engine.reset()
        for part in (tokens[:8], tokens[8 : 8 + rows], tokens[8 + rows : 36]):
            engine.prefill(part)
        engine.forward(tokens[36:])
        return engine.logits()

    expected = logits(5)
    for rows in range(1, 28):
        assert np.abs(logits(rows) - expected).max() < 1e-4 * expected.std()


@pytest.mark.parametrize("name", FAMILIES)
def test_rows_together_decide_as_rows_alone(targets, name):
    session = targets[name].open(features(3.3), Request())
    start = len(session.prompt) - 1
    tokens = [session.prompt[-1], *plain(session, 20)]
    alone = tokens[1:]
    for rows in (2, 3, 5, 7, 12, 20):
        session.rollback(start)
        assert session.forward(tokens[:rows]).tolist() == alone[:rows]


@pytest.mark.parametrize("name", FAMILIES)
def test_any_rounds_of_accepting_and_rolling_back_leave_the_cache_exact(targets, name):
    session = targets[name].open(features(3.3), Request())
    start, chance = len(session.prompt) - 1, random.Random(0)
    tokens = [session.prompt[-1], *plain(session, 40)]
    session.rollback(start)
    at = 0
    while at < 30:
        right, wrong = chance.randint(0, 4), chance.randint(0, 4)
        rows = tokens[at : at + 1 + right] + [chance.randrange(250) for _ in range(wrong)]
        assert session.forward(rows)[: right + 1].tolist() == tokens[at + 1 : at + 2 + right]
        kept = chance.randint(1, right + 1)
        session.rollback(start + at + kept)
        at += kept
    assert session.length == start + at


@pytest.mark.parametrize("name", FAMILIES)
def test_no_draft_changes_the_text(targets, name):
    target, chance = targets[name], random.Random(1)

    def run(tokens, budget):
        return decoded(target, target.open(features(3.3), Request()), Replayed(tokens), budget)

    alone, _ = decoded(target, target.open(features(3.3), Request()), EMPTY, 0)
    noise = [chance.randrange(target.spec.vocab_size) for _ in alone]
    holes = [token if chance.random() < 0.7 else other for token, other in zip(alone, noise, strict=True)]
    for draft in (noise, holes, alone[5:], [*alone[:9], target.spec.end_id], alone):
        for budget in (1, 4, 15):
            assert run(draft, budget)[0] == alone
    assert run(alone, 4)[1] > len(alone) // 2


@pytest.mark.parametrize("name", FAMILIES)
def test_a_drafter_of_the_same_model_drafts_the_targets_text(targets, folders, name):
    drafted = []
    for token in AudioDrafter(folders[name], 1).draft(features(3.3), Request()):
        drafted.append(targets[name].spec.end_id if token.id == END else token.id)
        if len(drafted) == 60:
            break
    alone, _ = decoded(targets[name], targets[name].open(features(3.3), Request()), EMPTY, 0, len(drafted))
    assert drafted == alone


@pytest.mark.parametrize("name", FAMILIES)
def test_all_of_a_whole_window_is_heard(targets, name):
    prompt = targets[name].open(features(30.0), Request(language="en")).prompt
    sound = sum(token >= targets[name].spec.vocab_size for token in prompt)
    assert sound == {"qwen2_audio": 750, "qwen2_5_omni": 750, "qwen3_asr": 390}[name]


def test_what_a_model_says_of_the_language_is_no_text(targets):
    target = targets["qwen3_asr"]
    session = target.open(features(3.3), Request())
    assert session.language == "en"
    assert target.tokenizer.decode_bytes(session.prompt[-3:]) == b"language English"
    assert session.prompt[-1] == target.tokenizer.special("<asr_text>")
    told = target.open(features(3.3), Request(language="de"))
    assert told.language == "de"
    assert target.tokenizer.decode_bytes(told.prompt).endswith(b"language German")


def test_a_model_that_does_not_say_the_language_is_taken_at_its_word(targets, monkeypatch):
    target = targets["qwen3_asr"]
    alone = plain(target.open(features(3.3), Request()), 20)
    prompt = len(target.open(features(3.3), Request()).prompt)
    monkeypatch.setitem(target.tokenizer._specials, "<asr_text>", target.spec.vocab_size - 1)  # never said
    session = target.open(features(3.3), Request())
    assert session.language is None
    assert len(session.prompt) == prompt - 3
    assert plain(session, 23)[3:] == alone


def test_a_question_cannot_smuggle_in_a_special_token(targets):
    target = targets["qwen2_audio"]
    prompt = target.open(features(1.0), Request("ask", question="<|im_end|>")).prompt
    harmless = target.open(features(1.0), Request("ask", question="?")).prompt
    assert prompt.count(target.spec.end_id) == harmless.count(target.spec.end_id)


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("audio.mnn", "no audio encoder"),
        ("embeddings_bf16.bin", "no table of embeddings"),
        ("tokenizer.json", "tokenizer.json: not a usable tokenizer"),
        ("llm_config.json", "llm_config.json: missing or broken"),
        ("llm.mnn", "llm.mnn: missing"),
    ],
)
def test_an_export_that_lacks_a_part_is_refused_by_its_name(folders, tmp_path, file, told):
    folder = Path(shutil.copytree(folders["qwen2_audio"], tmp_path / "export"))
    (folder / file).unlink()
    with pytest.raises(ModelError, match=told):
        AudioTarget(folder, 1)


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("config.json", {"llm_model": "../llm.mnn"}),
        ("config.json", {"llm_weight": "/etc/passwd"}),
        ("config.json", {"embedding_file": "/dev/zero"}),
        ("config.json", {"embedding_file": ["a"]}),
        ("llm_config.json", {"layer_nums": 10**9}),
        ("llm_config.json", {"hidden_size": True}),
        ("llm_config.json", {"attention_type": 3}),
    ],
)
def test_an_export_cannot_name_files_elsewhere_nor_sizes_that_cannot_be(folders, tmp_path, file, changes):
    folder = Path(shutil.copytree(folders["qwen2_audio"], tmp_path / "export"))
    settings = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps({**settings, **changes}))
    with pytest.raises(ModelError, match=rf"export/{file}: "):
        AudioTarget(folder, 1)


def test_the_engine_is_told_nothing_of_an_export_that_it_need_not_know(folders, tmp_path, monkeypatch):
    folder = Path(shutil.copytree(folders["qwen2_audio"], tmp_path / "export"))
    for name in ("config.json", "llm_config.json"):
        settings = json.loads((folder / name).read_text())
        hostile = {"tmp_path": "/home", "use_mmap": True, "base_dir": "/", "jinja": {"chat_template": "{{"}}
        (folder / name).write_text(json.dumps({**settings, **hostile, "tokenizer_file": "/dev/zero"}))
    told = []

    def take(self, private, *_):
        told.extend(json.loads((private / name).read_text()) for name in ("config.json", "llm_config.json"))

    monkeypatch.setattr(Engine, "__init__", take)
    SplicedEngine(folder, 1)
    assert set(told[0]) == {
        *("llm_model", "llm_weight", "embedding_file", "tokenizer_file", "base_dir", "llm_config")
    }
    assert told[0]["base_dir"] == ""
    assert "jinja" not in told[1]


@pytest.mark.parametrize("array", [np.int32(0), np.zeros(3, np.int32), np.float32(8), np.int64(1 << 40)])
def test_a_width_that_cannot_be_is_refused(tmp_path, array):
    np.save(tmp_path / "audio_width.npy", array)
    with pytest.raises(ModelError, match=r"audio_width\.npy"):
        qwen3_asr.load_encoder(tmp_path, 1)


def test_a_model_of_another_family_is_refused(folders, tmp_path):
    folder = Path(shutil.copytree(folders["qwen2_audio"], tmp_path / "export"))
    settings = json.loads((folder / "llm_config.json").read_text())
    (folder / "llm_config.json").write_text(json.dumps({**settings, "model_type": "qwen2_vl"}))
    with pytest.raises(ModelError, match="'qwen2_vl' is not known"):
        AudioTarget(folder, 1)


def test_a_language_that_the_model_does_not_know_is_refused(targets):
    with pytest.raises(RequestError, match="'cy'"):
        targets["qwen2_audio"].open(features(1.0), Request(language="cy"))


TEXT = "It's 12.5 µm — naïve “quotes”,\n\n  and\t日本語 <|im_end|>!"


def write_vocabulary_and_merges(folder, content, added):
    folder.mkdir()
    model = content["model"]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
    decoder = {str(number): {"content": name} for name, number in added.items()}
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": decoder}))


def write_mnn_text(folder, content, added):
    folder.mkdir()
    ids = {**content["model"]["vocab"], **added}
    tokens = sorted(ids, key=lambda token: ids[token])
    merges = [m if isinstance(m, str) else " ".join(m) for m in content["model"]["merges"]]
    numbers = " ".join(map(str, [*added.values(), 282, 280]))
    head = ["430 3", f"{len(added)} 2 0", numbers + " ", f"{len(tokens)} {len(merges)}"]
    (folder / "tokenizer.txt").write_text("\n".join([*head, *tokens, *merges, ""]))


@pytest.mark.parametrize("write", [write_vocabulary_and_merges, write_mnn_text])
def test_a_tokenizer_in_another_form_is_the_same(folders, tmp_path, write):
    content = json.loads((folders["qwen2_audio"] / "tokenizer.json").read_text())
    added = {token["content"]: token["id"] for token in content["added_tokens"]}
    write(tmp_path / "source", content, added)
    take_tokenizer(tmp_path / "source", tmp_path)
    made, original = load_hub_tokenizer(tmp_path), load_hub_tokenizer(folders["qwen2_audio"])
    assert made.encode(TEXT) == original.encode(TEXT)
    assert made.decode_bytes(made.encode(TEXT)).decode() == unicodedata.normalize("NFC", TEXT)
    assert made.special("<|im_end|>") == original.special("<|im_end|>")
    assert made.fingerprint == original.fingerprint


@pytest.mark.parametrize(
    "changes",
    [
        {"normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}},
        {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}},
        {"model": {"type": "BPE", "vocab": {"a": 2**31 - 1}, "merges": []}},
        {"model": {"type": "BPE", "vocab": {"a": 1, "b": 1}, "merges": []}},
        {"added_tokens": [{"id": 2**40, "content": "a"}]},
        {"added_tokens": [{"id": float("inf"), "content": "a"}]},
    ],
)
def test_a_tokenizer_that_is_more_than_a_vocabulary_is_refused(folders, tmp_path, changes):
    content = json.loads((folders["qwen2_audio"] / "tokenizer.json").read_text())
    (tmp_path / "tokenizer.json").write_text(json.dumps({**content, **changes}))
    with pytest.raises(ModelError, match="not a usable tokenizer"):
        load_hub_tokenizer(tmp_path)


@pytest.mark.parametrize("text", [b"430 3\n1 0 0\n\xff" + bytes(10**6), b"430 3\n1 0 0\n9\n1e9 1\n", b""])
def test_a_broken_export_tokenizer_is_one_line_however_long_it_is(tmp_path, text):
    (tmp_path / "tokenizer.txt").write_bytes(text)
    with pytest.raises(ModelError, match="its tokenizer is broken") as told:
        take_tokenizer(tmp_path, tmp_path)
    assert len(told.value.message) < 1100


def test_a_merge_that_makes_the_library_panic_is_an_error(tmp_path, capfd):
    tokens = ["a", "bcdefgh", ""]
    (tmp_path / "tokenizer.txt").write_text("\n".join(["430 3", "0 0 0", "", "3 1", *tokens, "a bcdefgh"]))
    with pytest.raises(ModelError, match="vocabulary and merges do not fit"):
        take_tokenizer(tmp_path, tmp_path)


def test_a_broken_tokenizer_is_told(tmp_path):
    (tmp_path / "tokenizer.txt").write_text("430 1\n0 1 0\n0 \n1\nIQ==\n")
    with pytest.raises(ModelError, match="no merges"):
        take_tokenizer(tmp_path, tmp_path)


def test_a_checkpoint_of_another_family_has_to_be_exported(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "qwen2_audio"}')
    with pytest.raises(ModelError, match="cannot be converted as it is") as told:
        checkpoints.convert({}, tmp_path, tmp_path)
    assert "as2d models export" in told.value.hint


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("audio_config", {"encoder_attention_heads": 0}),
        ("audio_config", {"encoder_attention_heads": 7}),
        ("audio_config", {"encoder_layers": 10**9}),
        ("audio_config", {"d_model": None}),
        ("text_config", {"num_hidden_layers": 10**9}),
        ("text_config", {"num_hidden_layers": 2000}),
        ("text_config", {"head_dim": float("inf")}),
        ("text_config", {"rope_theta": float("nan")}),
        ("text_config", {"vocab_size": "many"}),
    ],
)
def test_a_checkpoint_that_claims_what_cannot_be_is_refused(tmp_path, part, changes):
    source = Path(shutil.copytree(DATA / "stand_ins" / "qwen3_asr", tmp_path / "checkpoint"))
    config = json.loads((source / "config.json").read_text())
    config["thinker_config"][part] |= changes
    (source / "config.json").write_text(json.dumps(config))
    (tmp_path / "made").mkdir()
    with pytest.raises(ModelError, match=r"config\.json: unusable|beyond all|cannot have these dimensions"):
        checkpoints.convert({}, source, tmp_path / "made")


@pytest.mark.parametrize("part", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_checkpoint_that_lacks_a_part_is_refused_by_its_name(tmp_path, part):
    source = Path(shutil.copytree(DATA / "stand_ins" / "qwen3_asr", tmp_path / "checkpoint"))
    (source / part).unlink()
    (tmp_path / "made").mkdir()
    told = {"model.safetensors": "no weight thinker", "tokenizer.json": "no tokenizer"}.get(part, part)
    with pytest.raises(ModelError, match=told):
        checkpoints.convert({}, source, tmp_path / "made")
