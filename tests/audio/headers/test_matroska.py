"""An encrypted track of Matroska or WebM is found, also where sizes are unknown; others are not."""

import io

import av
import numpy as np
import pytest

from as2d_cli.audio.headers.matroska import encrypted_tracks
from as2d_cli.audio.stream import open_audio
from as2d_cli.domain.errors import AudioError

TRACKS, ENTRY = bytes.fromhex("1654ae6b"), b"\xae"


def media(tracks=1, container="webm", codec="libopus", **options):
    file = io.BytesIO()
    with av.open(file, "w", format=container, options=options) as output:
        streams = [output.add_stream(codec, rate=48_000, layout="mono") for _ in range(tracks)]
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 48_000), np.int16), format="s16", layout="mono")
        frame.sample_rate = 48_000
        for stream in streams:
            frame.pts = 0
            output.mux([*stream.encode(frame), *stream.encode()])
    return file.getvalue()


def element(name, *parts):
    body = b"".join(parts)
    return bytes.fromhex(name) + (len(body) | 1 << 56).to_bytes(8, "big") + body


def encoding(algorithm=5, key=True):
    """Return what says that a track is encrypted: WebM, AES in CTR mode."""
    identity = element("47e2", b"1" * 16) if key else b""
    encryption = element("5035", element("47e1", bytes([algorithm])), identity)
    return element("6d80", element("6240", element("5033", b"\1"), encryption))


def with_encodings(content, *encodings):
    """Put an encoding at the end of each track's description; whatever FFmpeg wrote keeps its meaning."""
    place = content.rindex(TRACKS)  # an index may come first
    width = 9 - content[place + 4].bit_length()
    size = int.from_bytes(content[place + 4 : place + 4 + width], "big") - (1 << 7 * width)
    first = place + 4 + width
    body, entries, at = content[first : first + size], [], 0
    while at < len(body):
        width = 9 - body[at + 1].bit_length()
        length = int.from_bytes(body[at + 1 : at + 1 + width], "big") - (1 << 7 * width)
        if body[at : at + 1] == ENTRY:
            entries.append(body[at + 1 + width : at + 1 + width + length])
        at += 1 + width + length
    tracks = [element("ae", entry, more) for entry, more in zip(entries, encodings, strict=True)]
    segment = content.index(bytes.fromhex("18538067"))  # its size is made unknown, as it grows
    head = content[: segment + 4] + b"\x01" + b"\xff" * 7
    return head + content[segment + 12 : place] + element("1654ae6b", *tracks) + content[first + size :]


@pytest.mark.parametrize("content", [media(), media(live="1"), media(container="matroska", codec="flac")])
@pytest.mark.parametrize("key", [True, False])
def test_an_encrypted_track_is_called_protected(content, key):
    with pytest.raises(AudioError, match=r"^audio: protected: its audio is encrypted$"):
        open_audio(io.BytesIO(with_encodings(content, encoding(key=key))))


def test_only_the_encrypted_one_of_several_tracks_is():
    content = media(2, "matroska")
    assert encrypted_tracks(io.BytesIO(content)) == (False, False)
    content = with_encodings(content, b"", encoding())
    assert encrypted_tracks(io.BytesIO(content)) == (False, True)
    assert open_audio(io.BytesIO(content)).expected_s is not None


@pytest.mark.parametrize("more", [b"", encoding(algorithm=0), element("6d80", element("6240"))])
def test_a_track_that_is_signed_or_compressed_is_not_encrypted(more):
    assert encrypted_tracks(io.BytesIO(with_encodings(media(), more))) == (False,)


@pytest.mark.parametrize("live", ["0", "1"])
def test_no_beginning_of_a_file_is_an_error(live):
    content = with_encodings(media(live=live), encoding())
    found = {encrypted_tracks(io.BytesIO(content[:length])) for length in range(0, len(content), 7)}
    assert found <= {(), (False,), (True,)}
    assert (True,) in found
