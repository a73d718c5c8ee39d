"""When FLAC in Ogg begins is found out, and nothing of other streams or of damage."""

import io
from fractions import Fraction

import av
import numpy as np
import pytest

from as2d_cli.audio.headers.ogg import flac_begin

RATE = 48_000


def ogg(codec="flac", begin=0, sizes=(4096,) * 8, loudness=0.1):
    """Return an Ogg file of frames of these sizes that begins at sample `begin`."""
    file = io.BytesIO()
    with av.open(file, "w", format="ogg") as output:
        stream = output.add_stream(codec, rate=RATE, layout="mono")
        for size in sizes:
            samples = np.random.default_rng(size).normal(0, loudness, (1, size)).astype(np.float32)
            frame = av.AudioFrame.from_ndarray((samples * 32767).astype(np.int16), "s16", "mono")
            frame.sample_rate, frame.time_base, frame.pts = RATE, Fraction(1, RATE), begin
            begin += size
            output.mux(stream.encode(frame))
        output.mux(stream.encode())
    return file.getvalue()


@pytest.mark.parametrize("begin", [0, 1, RATE * 5, RATE * 3600])
@pytest.mark.parametrize("loudness", [0.0, 0.1])
def test_the_first_sample_of_flac_is_known(begin, loudness):
    found = flac_begin(io.BytesIO(ogg(begin=begin, loudness=loudness)), 0)
    assert found.at == begin
    assert 0 < found.n_first <= 8 * 4096


def test_a_page_on_which_no_frame_ends_does_not_matter():
    content = ogg(begin=RATE, sizes=(4608 * 8,) * 3, loudness=0.3)  # frames of more than a page
    assert flac_begin(io.BytesIO(content), 0).at == RATE


def test_of_other_codecs_and_streams_nothing_is_said():
    assert flac_begin(io.BytesIO(ogg("libopus", sizes=(960,) * 8)), 0) is None
    assert flac_begin(io.BytesIO(ogg(begin=RATE)), 1) is None


def test_no_beginning_of_a_file_is_an_error():
    content = ogg(begin=RATE)
    for length in range(0, len(content), 101):
        found = flac_begin(io.BytesIO(content[:length]), 0)
        assert found is None or found.at >= 0


def test_damage_is_no_error():
    content, random = ogg(begin=RATE), np.random.default_rng(3)
    for _ in range(200):
        damaged = bytearray(content)
        for place in random.integers(0, len(content), 20):
            damaged[place] = random.integers(256)
        flac_begin(io.BytesIO(bytes(damaged)), 0)
