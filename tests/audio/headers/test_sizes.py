"""A file is read to its end, whatever its header states; what follows the audio is not heard."""

import io
import struct

import numpy as np
import pytest
import soundfile

from as2d_cli.audio.headers.sizes import whole
from as2d_cli.audio.stream import open_audio

RATE_HZ = 16_000
SECONDS = 11
SOUND = np.random.default_rng(5).normal(0, 0.1, SECONDS * RATE_HZ).clip(-1, 1).astype(np.float32)
CHUNK = b"LIST" + struct.pack("<I", 12) + b"INFOICMT\0\0\0\0"
ODD_CHUNK = b"name" + struct.pack("<I", 3) + b"abc\0"


def stating(stated, after=b"", **options):
    """Return a WAV file of `SOUND` whose header states so many bytes of audio, with what comes after it."""
    file = io.BytesIO()
    soundfile.write(file, SOUND, RATE_HZ, **{"format": "WAV", "subtype": "PCM_16", **options})
    content = bytearray(file.getvalue())
    place = content.index(b"data") + 4
    del content[place + 4 + struct.unpack_from("<I", content, place)[0] :]  # libsndfile puts a chunk there
    content[place : place + 4] = struct.pack("<I", stated)
    return bytes(content) + after


def heard(content):
    stream = open_audio(io.BytesIO(content))
    return np.concatenate(list(stream.blocks())), stream


@pytest.mark.parametrize("stated_s", [0, 3])
@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT", "ULAW", "IMA_ADPCM"])
def test_audio_beyond_what_the_header_states_is_heard_and_that_is_told(stated_s, subtype):
    bytes_per_s = struct.unpack_from("<I", stating(0, subtype=subtype), 28)[0]
    samples, stream = heard(stating(stated_s * bytes_per_s, subtype=subtype))
    assert len(samples) == pytest.approx(len(SOUND), abs=1024)  # ADPCM comes in blocks
    assert np.corrcoef(samples[: len(SOUND)], SOUND[: len(samples)])[0, 1] > 0.9
    assert stream.warnings == [
        f"the header says {stated_s}.0 s, the file holds {len(samples) / RATE_HZ:.1f} s: all of it was read"
    ]
    assert stream.expected_s == pytest.approx(stream.duration_s, abs=0.1)


@pytest.mark.parametrize(
    "after",
    [
        CHUNK,
        CHUNK + ODD_CHUNK + CHUNK,
        CHUNK[:10] + bytes(5000),
        b"id3 " + struct.pack("<I", 9000) + b"ID3\3\0" + bytes(8995),
        b"bext" + struct.pack("<I", 9000) + bytes(9000),
        b"abcd" + struct.pack("<I", 9000) + bytes(9000) + CHUNK,
        b"LIST" + struct.pack("<I", 90_000) + bytes(9000),  # cut off
        b"TAG" + bytes(9000),
        bytes(100),
    ],
)
@pytest.mark.parametrize("pad", [b"", b"\0"])
def test_what_may_follow_the_audio_is_not_heard(after, pad):
    samples, stream = heard(stating(2 * len(SOUND), pad + after))
    assert len(samples) == len(SOUND)
    assert stream.warnings == []


def test_a_file_without_audio_before_its_titles_is_none():
    content = stating(0)
    content = content[: content.index(b"data") + 8] + CHUNK
    assert whole(io.BytesIO(content)).stated_s is None


@pytest.mark.parametrize("after", [b"", CHUNK])
def test_a_size_that_wrapped_at_4_gb_is_found(tmp_path, after):
    n_bytes = (1 << 32) + 2 * len(SOUND)
    content = stating(2 * len(SOUND))
    path = tmp_path / "long.wav"
    with path.open("wb") as file:
        file.write(content)
        file.truncate(len(content) - 2 * len(SOUND) + n_bytes)  # takes no room on the disk
        file.seek(0, io.SEEK_END)
        file.write(after)
    with path.open("rb") as file:
        view, stated_s = whole(file)
        assert stated_s == SECONDS
        with soundfile.SoundFile(view) as sound:
            assert sound.frames == n_bytes // 2
            assert sound.samplerate == RATE_HZ


def test_a_size_of_more_than_4_gb_that_was_never_written_is_found(tmp_path):
    path = tmp_path / "long.wav"
    with path.open("wb") as file:
        file.write(stating(0))
        file.truncate(5 << 30)
    with path.open("rb") as file, soundfile.SoundFile(whole(file).file) as sound:
        assert sound.frames == ((5 << 30) - 44) // 2


def test_rf64_states_its_size_elsewhere():
    content = stating(0xFFFFFFFF, format="RF64")
    place = content.index(b"ds64") + 16
    for stated, told in ((2 * len(SOUND), None), (2 * RATE_HZ, 1.0)):
        content = content[:place] + struct.pack("<Q", stated) + content[place + 8 :]
        assert whole(io.BytesIO(content)).stated_s == told
        assert len(heard(content)[0]) == len(SOUND)


@pytest.mark.parametrize(
    "damage", [b"RIFF\0\0\0\0WAVE", b"RIFF\0\0\0\0WAVEdata\0\0\0\0" + bytes(9000), b"", b"RI"]
)
def test_a_header_without_sense_is_left_to_others(damage):
    file = io.BytesIO(damage)
    assert whole(file) == (file, None)


def test_bytes_per_second_that_are_zero_do_not_matter():
    content = bytearray(stating(0))
    content[28:32] = bytes(4)
    assert len(heard(bytes(content))[0]) == len(SOUND)
    content[32:34] = bytes(2)
    assert whole(io.BytesIO(bytes(content))).stated_s is None


FORMATS = {  # how a format writes a chunk of titles, and how its sizes are found in its header
    "RIFX": ({"format": "WAV", "endian": "BIG"}, lambda body: b"LIST" + struct.pack(">I", len(body)) + body),
    "AIFF": ({"format": "AIFF"}, lambda body: b"ANNO" + struct.pack(">I", len(body)) + body),
    "AIFC": (
        {"format": "AIFF", "subtype": "FLOAT"},
        lambda body: b"NAME" + struct.pack(">I", len(body)) + body,
    ),
    "W64": (
        {"format": "W64"},
        lambda body: W64_LIST + struct.pack("<Q", 24 + len(body)) + body + bytes(-len(body) % 8),
    ),
    "CAF": ({"format": "CAF"}, lambda body: b"info" + struct.pack(">q", len(body)) + body),
}
W64_LIST = bytes.fromhex("6c697374f3acd3118cd100c04f8edb8a")
SIZES = {  # where the size of the audio stands: how far behind which bytes, how written, what it counts, too
    "RIFX": [(b"data", 4, ">I", 0)],
    "AIFF": [(b"SSND", 4, ">I", 8)],
    "AIFC": [(b"SSND", 4, ">I", 8)],
    "W64": [(b"data\xf3\xac", 16, "<Q", 24)],
    "CAF": [(b"data", 4, ">q", 4)],
}


def made(name, stated_s=None, after=b""):
    """Return a file of `SOUND` whose header states so many seconds, with what comes after it."""
    options, _ = FORMATS[name]
    file = io.BytesIO()
    soundfile.write(file, SOUND, RATE_HZ, **{"subtype": "PCM_16", **options})
    content = bytearray(file.getvalue())
    width = 4 if options.get("subtype") == "FLOAT" else 2
    mark, offset, kind, more = SIZES[name][0]
    place = content.index(mark) + offset
    end = place + struct.calcsize(kind) + (more if more < 24 else 0) + width * len(SOUND)
    del content[end:]
    if stated_s is not None:
        struct.pack_into(kind, content, place, round(stated_s * RATE_HZ) * width + more)
    if stated_s is not None and b"COMM" in content:
        struct.pack_into(">I", content, content.index(b"COMM") + 10, round(stated_s * RATE_HZ))
    return bytes(content) + after


@pytest.mark.parametrize("stated_s", [0, 3])
@pytest.mark.parametrize("name", FORMATS)
def test_other_formats_are_read_to_their_end_too(name, stated_s):
    samples, stream = heard(made(name, stated_s))
    assert np.abs(samples - SOUND).max() < 1e-4
    assert stream.warnings == [
        f"the header says {stated_s}.0 s, the file holds {SECONDS}.0 s: all of it was read"
    ]
    assert stream.expected_s == SECONDS


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("times", [1, 2])
def test_their_titles_are_not_heard(name, times):
    title = FORMATS[name][1](b"a title of so many bytes " * 1000)
    samples, stream = heard(made(name, after=title * times))
    assert len(samples) == len(SOUND)
    assert stream.warnings == []


@pytest.mark.parametrize("endian", ["BIG", "LITTLE"])
@pytest.mark.parametrize("subtype", ["PCM_16", "ULAW", "FLOAT"])
def test_au_is_read_to_its_end(endian, subtype):
    file = io.BytesIO()
    soundfile.write(file, SOUND, RATE_HZ, format="AU", subtype=subtype, endian=endian)
    content = bytearray(file.getvalue())
    assert heard(bytes(content))[1].warnings == []
    content[8:12] = struct.pack(">I" if endian == "BIG" else "<I", 8000)
    samples, stream = heard(bytes(content))
    assert len(samples) == len(SOUND)
    assert "all of it was read" in stream.warnings[0]


@pytest.mark.parametrize("name", FORMATS)
def test_no_beginning_of_a_header_is_an_error(name):
    content = made(name, 0)
    for length in range(120):
        assert whole(io.BytesIO(content[:length])).stated_s is None
