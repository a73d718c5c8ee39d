"""Encrypted audio is called protected, not damaged; audio that is not is left alone."""

import io
import struct

import av
import numpy as np
import pytest

from as2d_cli.audio.headers.protection import protected_tracks
from as2d_cli.audio.stream import open_audio
from as2d_cli.audio.tracks import AudioChoice
from as2d_cli.domain.errors import AudioError

ASF = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
ASF_ENCRYPTED = bytes.fromhex("fbb3112223bdd211b4b700a0c955fc6e")


def mp4(tracks=1, options=None):
    file = io.BytesIO()
    with av.open(file, "w", format="mp4", options=options or {}) as output:
        streams = [output.add_stream("aac", rate=16_000, layout="mono") for _ in range(tracks)]
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 16_000), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 16_000
        for stream in streams:
            frame.pts = 0
            output.mux(stream.encode(frame))
            output.mux(stream.encode())
    return file.getvalue()


def encrypted():
    key = {"encryption_scheme": "cenc-aes-ctr", "encryption_key": "1" * 32, "encryption_kid": "2" * 32}
    return mp4(options=key)


@pytest.mark.parametrize(
    "content",
    [
        encrypted(),
        mp4().replace(b"mp4a", b"drms", 1),
        mp4().replace(b"mp4a", b"aavd", 1),
        ASF + bytes(100) + ASF_ENCRYPTED,
        struct.pack(">I", 9000) + b"\x57\x90\x75\x36" + bytes(9000),
    ],
)
def test_encrypted_audio_is_called_protected(content):
    with pytest.raises(AudioError, match=r"^audio: protected: its audio is encrypted$"):
        open_audio(io.BytesIO(content))


def test_the_reader_would_have_called_it_damaged():
    """Common Encryption hides nothing but the samples, so that the file opens."""
    with av.open(io.BytesIO(encrypted())) as container:
        assert container.streams.audio[0].codec_context.name == "aac"


@pytest.mark.parametrize(
    "content",
    [
        mp4(),
        mp4()[:200],
        b"\0\0\0\0ftyp",
        b"\0\0\0\1mdat" + struct.pack(">Q", (1 << 64) - 1),
        ASF + bytes(100),
        b"",
        b"enca" * 100,
    ],
)
def test_other_files_are_not(content):
    assert not any(protected_tracks(io.BytesIO(content)))


def test_a_track_beside_an_encrypted_one_can_be_heard():
    content = mp4(2).replace(b"mp4a", b"enca", 1)
    with pytest.raises(AudioError, match=r"^audio: protected: its audio track 1 is encrypted$") as refused:
        open_audio(io.BytesIO(content))
    assert refused.value.hint == "--audio-track chooses another: 1: und, 2: und"
    assert len(np.concatenate(list(open_audio(io.BytesIO(content), AudioChoice("2")).blocks()))) > 15_000
