"""AskFromTranscript GGUF files: what is in sound ones, and one clear error for all others."""

import struct

import gguf
import numpy as np
import pytest

from as2d_cli.domain.errors import ModelError
from as2d_mnn_llm.gguf.file import GgufFile

MATRIX = np.arange(6 * 64, dtype=np.float32).reshape(6, 64)
SIXTY_QUINTILLION = (1 << 60).to_bytes(8, "little")


@pytest.fixture
def sound(tmp_path):
    path = tmp_path / "sound.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("llama.block_count", 3)
    writer.add_float32("llama.eps", 0.5)
    writer.add_array("words", ["one", "zwei", "três"])
    writer.add_array("types", [1, 3, 1])
    writer.add_tensor("matrix", MATRIX)
    writer.add_tensor("vector", MATRIX[0])
    writer.add_tensor("quantised", gguf.quantize(MATRIX, gguf.GGMLQuantizationType.Q8_0), raw_dtype=8)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def header(tensors=0, entries=0):
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, entries)


def text(value):
    return struct.pack("<Q", len(value)) + value


def test_metadata_and_tensors_are_what_the_reference_writer_wrote(sound):
    file = GgufFile(sound)
    assert file.text("general.architecture") == "llama"
    assert file.integer("llama.block_count") == 3
    assert file.number("llama.eps") == 0.5
    assert file.texts("words") == ["one", "zwei", "três"]
    assert file.integers("types") == [1, 3, 1]
    assert file.tensor("matrix").shape == (6, 64)
    assert file.tensor("vector").shape == (1, 64)
    assert np.array_equal(file.tensor("matrix").data.view("<f4"), MATRIX)
    assert file.tensor("quantised").data.shape == (6, 2 * 34)


def test_a_file_cut_off_anywhere_is_an_error_naming_it(sound, tmp_path):
    content, cut = sound.read_bytes(), tmp_path / "cut.gguf"
    for length in [*range(0, 600, 7), len(content) - 40]:
        cut.write_bytes(content[:length])
        with pytest.raises(ModelError, match=r"cut\.gguf: not a usable GGUF file"):
            GgufFile(cut)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"GGML" + bytes(40), "does not begin with GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 9, 0, 0), "version 9"),
        (header(tensors=1 << 60) + bytes(64), "ends within its header"),
        (header(entries=1 << 60) + bytes(64), "ends within its header"),
        (header(entries=1) + SIXTY_QUINTILLION + bytes(64), "ends within its header"),
        (
            header(entries=1) + text(b"k") + struct.pack("<II", 9, 0) + SIXTY_QUINTILLION + bytes(64),
            "ends within its header",
        ),
        (header(entries=1) + text(b"k") + struct.pack("<IIQ", 9, 9, 1) + bytes(64), "type 9 is not known"),
        (header(entries=1) + text(b"\xff\xff") + bytes(64), "not UTF-8"),
        (header(entries=2) + 2 * (text(b"k") + struct.pack("<II", 4, 1)), "k is there twice"),
        (
            header(tensors=1) + text(b"t") + struct.pack("<IQQIQ", 2, 1 << 40, 1 << 40, 0, 0) + bytes(64),
            "ends within tensor t",
        ),
        (header(tensors=1) + text(b"t") + struct.pack("<IQIQ", 1, 33, 8, 0) + bytes(64), "shape 1 x 33"),
        (header(tensors=1) + text(b"t") + struct.pack("<IQIQ", 1, 32, 99, 0) + bytes(64), "ggml type 99"),
    ],
)
def test_claims_that_cannot_be_are_errors_at_once(tmp_path, content, why):
    path = tmp_path / "odd.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=why):
        GgufFile(path)


def test_what_is_asked_for_and_not_there_is_named(sound):
    file = GgufFile(sound)
    with pytest.raises(ModelError, match=r"llama\.heads is missing"):
        file.integer("llama.heads")
    with pytest.raises(ModelError, match="not a text"):
        file.text("llama.block_count")
    with pytest.raises(ModelError, match="no tensor output"):
        file.tensor("output")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"nowhere\.gguf"):
        GgufFile(tmp_path / "nowhere.gguf")
