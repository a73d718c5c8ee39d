"""Exports and checkpoints are judged by names and settings alone: no other file is there."""

import json

import pytest

from as2d_cli.domain.errors import ModelError
from as2d_mnn_llm.checkpoints.check import check

OMNI = {"config.json", "llm_config.json", "tokenizer.txt", "embeddings_bf16.bin", "llm.mnn", "audio.mnn"}
LINES = {"bos": "", "system_prompt_template": "%s", "user_prompt_template": "%s"}
"""What llmexport wrote of a chat from MNN 3.1 to 3.3.0."""
ASR = {"model_type": "qwen3_asr"}
CHECKPOINT = {"config.json", "model.safetensors", "vocab.json", "merges.txt", "tokenizer_config.json"}


def written(folder, **settings):
    for name, content in settings.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    "settings",
    [
        {"is_audio": True, "n_window": 100, **LINES},  # 3.1.4
        {"is_audio": True, "n_window": 100, "attention_type": "full", **LINES},  # 3.3.0
        {"is_audio": True, "n_window": 100, "model_type": "qwen2_5_omni"},  # 3.3.1
        {"is_audio": True, "model_type": "qwen2_audio", "is_mrope": False},  # 3.5.0
        {"is_audio": True, **LINES},
    ],
)
def test_exports_of_all_releases_since_mnn_3_1_pass(tmp_path, settings):
    check(written(tmp_path, config={}, llm_config=settings), OMNI)


def test_original_checkpoints_of_qwen3_asr_pass(tmp_path):
    check(written(tmp_path, config={**ASR, "thinker_config": {}}), CHECKPOINT)


@pytest.mark.parametrize(
    ("settings", "names", "message", "hint"),
    [
        (
            {"is_audio": True, "prompt_template": "%s", "key_value_shape": []},
            OMNI,
            "an export of qwen2_audio made with MNN 3.0 cannot verify drafts",
            "since MNN 3.1",
        ),
        ({"prompt_template": "%s"}, OMNI, "a model of type 'None' is not known", "known: qwen2_audio"),
        (
            {**ASR, "audio_type": "qwen3_asr", "is_audio": True},
            OMNI,
            "an export of qwen3_asr in a form that is not read here: no audio_front.mnn, audio_width.npy",
            "use the original checkpoint",
        ),
        (
            {"model_type": "qwen2_5_omni"},
            OMNI - {"audio.mnn"},
            "in a form that is not read here: no audio.mnn",
            "export the model with its audio encoder",
        ),
        (
            {"model_type": "qwen2_5_omni", "tie_embeddings": [0, 1, 2, 4, 64]},
            OMNI - {"embeddings_bf16.bin"},
            "without a table of embeddings of its own: no embeddings_bf16.bin",
            "seperate_embed",
        ),
        (
            {"model_type": "qwen2_5_omni"},
            OMNI - {"tokenizer.txt"} | {"tokenizer.mtok"},
            "no tokenizer that can be read: .*tokenizer.mtok",
            "add tokenizer.json",
        ),
    ],
)
def test_exports_that_cannot_be_used_are_refused_by_name(tmp_path, settings, names, message, hint):
    with pytest.raises(ModelError, match=message) as told:
        check(written(tmp_path, config={}, llm_config=settings), names)
    assert hint in told.value.hint


@pytest.mark.parametrize(
    ("settings", "names", "message", "hint"),
    [
        ({**ASR, "audio_config": {}, "text_config": {}}, CHECKPOINT, "layout of transformers", "-hf"),
        (
            {"model_type": "qwen2_audio"},
            CHECKPOINT,
            "type 'qwen2_audio' cannot be converted",
            "models export",
        ),
        ({**ASR, "thinker_config": {}}, CHECKPOINT - {"merges.txt"}, "no tokenizer", "add tokenizer.json"),
    ],
)
def test_checkpoints_that_cannot_be_converted_are_refused_by_name(tmp_path, settings, names, message, hint):
    with pytest.raises(ModelError, match=message) as told:
        check(written(tmp_path, config=settings), names)
    assert hint in told.value.hint
