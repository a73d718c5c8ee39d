"""Audio stands where its container says: gaps and late tracks become silence, overlaps are cut."""

import io
from fractions import Fraction

import av
import numpy as np
import pytest
import soundfile

from as2d_cli.audio.readers import Chunk
from as2d_cli.audio.stream import open_audio
from as2d_cli.audio.timeline import Timeline
from as2d_cli.audio.tracks import NO_CHOICE, AudioChoice

RATE = 48_000
CLICK_S = 0.5
"""Where in each piece of audio there is a click."""


def piece(seconds):
    """Return a faint hum with one click in it, mono."""
    samples = 0.01 * np.sin(np.arange(round(seconds * RATE)) * 0.02).astype(np.float32)
    samples[round(CLICK_S * RATE) :][:48] = 0.9
    return samples


def media(container, codec, pieces, *, start_s=0.0, picture=True, n_pictures=10):
    """Return a file with pieces of audio, (begin_s, seconds), and some pictures from `start_s` on."""
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        packets = pictures(output, container, start_s, n_pictures) if picture else []
        audio = output.add_stream(codec, rate=RATE, layout="mono")
        audio.bit_rate = 64_000
        audio.codec_context.open()
        size = audio.codec_context.frame_size or 1024
        resampler = av.AudioResampler(audio.format, "mono", RATE)
        for begin_s, seconds in pieces:
            samples = piece(seconds)[None]
            for first in range(0, samples.shape[1], size):
                frame = av.AudioFrame.from_ndarray(samples[:, first : first + size], "flt", "mono")
                frame.sample_rate, frame.time_base = RATE, Fraction(1, RATE)
                (frame,) = resampler.resample(frame)
                frame.pts = round((start_s + begin_s) * RATE) + first
                packets += audio.encode(frame)
        packets += audio.encode()
        for packet in sorted(packets, key=lambda packet: packet.dts * packet.time_base):
            output.mux(packet)
    return io.BytesIO(file.getvalue())


def pictures(output, container, start_s, count):
    codec = {"mpegts": "mpeg2video", "webm": "libvpx", "asf": "msmpeg4"}.get(container, "mpeg4")
    video = output.add_stream(codec, rate=25)
    video.width = video.height = 32
    video.pix_fmt = "yuv420p"
    packets = []
    for number in range(count):
        picture = av.VideoFrame.from_ndarray(np.full((48, 32), number % 256, np.uint8), "yuv420p")
        picture.pts, picture.time_base = round(start_s * 25) + number, Fraction(1, 25)
        packets += video.encode(picture)
    return [*packets, *video.encode()]


def clicks_s(file, choice=NO_CHOICE):
    """Return where the clicks are heard, and the stream."""
    stream = open_audio(file, choice)
    loud = np.flatnonzero(np.abs(np.concatenate(list(stream.blocks()))) > 0.25) / 16_000
    return [float(at) for at, before in zip(loud, [-1.0, *loud], strict=False) if at - before > 0.1], stream


FILMS = [
    *(("matroska", "aac"), ("matroska", "pcm_s16le"), ("matroska", "flac"), ("webm", "libopus")),
    *(
        ("mp4", "aac"),
        ("mov", "pcm_s16le"),
        ("mpegts", "aac"),
        ("mpegts", "mp2"),
        ("nut", "aac"),
        ("asf", "wmav2"),
    ),
]


@pytest.mark.parametrize(("container", "codec"), FILMS)
def test_a_track_that_begins_after_the_pictures_is_that_late(container, codec):
    heard, stream = clicks_s(media(container, codec, [(5.0, 3.0)]))
    assert heard == [pytest.approx(5.5, abs=0.02)]
    assert stream.warnings == []


@pytest.mark.parametrize(("container", "codec"), FILMS)
@pytest.mark.parametrize("begin_s", [0.0, 5.0])
def test_audio_that_ends_before_the_pictures_is_not_cut_short(container, codec, begin_s):
    heard, stream = clicks_s(media(container, codec, [(begin_s, 3.0)], n_pictures=425))
    assert heard == [pytest.approx(begin_s + 0.5, abs=0.05)]
    assert stream.warnings == []


@pytest.mark.parametrize("codec", ["aac", "flac", "pcm_s16le"])
def test_a_film_that_is_cut_off_is_called_cut_short(codec):
    content = media("matroska", codec, [(0.0, 15.0)], n_pictures=425).getvalue()
    _, stream = clicks_s(io.BytesIO(content[: len(content) // 2]))
    assert "cut short: the file says 17.0 s" in " ".join(stream.warnings)
    assert stream.duration_s < 12


@pytest.mark.parametrize(("container", "codec"), FILMS)
def test_a_clock_that_begins_at_ten_hours_begins_at_0(container, codec):
    heard, stream = clicks_s(media(container, codec, [(5.0, 3.0)], start_s=36_000.0))
    assert heard == [pytest.approx(5.5, abs=0.02)]
    assert stream.warnings == []


@pytest.mark.parametrize(
    ("container", "codec"), [*FILMS, ("ogg", "libopus"), ("ogg", "flac"), ("adts", "aac"), ("flv", "aac")]
)
def test_audio_alone_that_begins_at_an_hour_begins_at_0(container, codec):
    heard, stream = clicks_s(media(container, codec, [(0.0, 3.0)], start_s=3600.0, picture=False))
    assert heard == [pytest.approx(CLICK_S, abs=0.05)]  # the delay of the encoder is not always stated
    assert stream.duration_s == pytest.approx(3.0, abs=0.1)
    assert stream.warnings == []


@pytest.mark.parametrize("picture", [True, False])
@pytest.mark.parametrize(
    ("container", "codec"),
    [("matroska", "pcm_s16le"), ("webm", "libopus"), ("mp4", "aac"), ("mpegts", "mp2")],
)
def test_a_jump_of_the_clock_is_silence_of_its_length(container, codec, picture):
    heard, stream = clicks_s(media(container, codec, [(0.0, 2.88), (20.016, 3.0)], picture=picture))
    assert heard == [pytest.approx(0.5, abs=0.02), pytest.approx(20.516, abs=0.02)]
    assert stream.duration_s == pytest.approx(23.0, abs=0.1)
    (warning,) = stream.warnings
    assert warning.startswith("has no audio in 1 place(s) (first at 2.8")
    assert "17.1 s in all" in warning


def test_flac_in_ogg_that_begins_after_another_track_is_that_late():
    file = io.BytesIO()
    with av.open(file, "w", format="ogg") as output:
        streams = [output.add_stream("flac", rate=RATE, layout="mono") for _ in range(2)]
        for stream, begin_s in zip(streams, (0.0, 5.0), strict=True):
            frame = av.AudioFrame.from_ndarray((piece(3.0)[None] * 32767).astype(np.int16), "s16", "mono")
            frame.sample_rate, frame.time_base, frame.pts = RATE, Fraction(1, RATE), round(begin_s * RATE)
            output.mux([*stream.encode(frame), *stream.encode()])
    heard, stream = clicks_s(file, AudioChoice("2"))
    assert heard == [pytest.approx(5.5, abs=0.02)]
    assert stream.duration_s == pytest.approx(stream.expected_s) == pytest.approx(8.0)
    assert stream.warnings == []


def test_many_small_gaps_do_not_add_up():
    begins_s = [number * 3.1 for number in range(8)]
    heard, _ = clicks_s(media("matroska", "pcm_s16le", [(begin_s, 3.0) for begin_s in begins_s]))
    assert heard == [pytest.approx(begin_s + 0.5, abs=0.02) for begin_s in begins_s]


def test_two_hours_of_gaps_are_filled_in_blocks():
    file = media("matroska", "pcm_s16le", [(0.0, 1.5), (4000.0, 1.5), (7200.0, 1.5)])
    stream, at, largest, heard = open_audio(file), 0, 0, []
    for block in stream.blocks():
        if np.abs(block).max() > 0.25:
            heard.append((at + int(np.argmax(np.abs(block) > 0.25))) / 16_000)
        at, largest = at + len(block), max(largest, len(block))
    assert heard == [pytest.approx(begin_s + 0.5, abs=0.02) for begin_s in (0.0, 4000.0, 7200.0)]
    assert largest <= 10 * 16_000


def test_what_overlaps_is_heard_once():
    first, second = (
        media("mpegts", "mp2", [(0.0, 4.0)], start_s=start_s).getvalue() for start_s in (0.0, 3.0)
    )
    heard, stream = clicks_s(io.BytesIO(first + second))
    assert heard == [pytest.approx(0.5, abs=0.05)]  # the second click is in what overlaps
    assert stream.duration_s == pytest.approx(7.0, abs=0.1)


def test_all_of_joined_transport_streams_is_heard():
    content = media("mpegts", "mp2", [(0.0, 4.0)]).getvalue()
    heard, stream = clicks_s(io.BytesIO(content + content))
    assert heard == [pytest.approx(0.5, abs=0.05), pytest.approx(4.5, abs=0.1)]
    assert stream.duration_s == pytest.approx(8.0, abs=0.1)


FRAME_S = 0.02


def chunks_of(timeline, times_s):
    """Yield what a timeline makes of frames whose samples hold their number plus one."""
    for number, time_s in enumerate(times_s):
        yield from timeline.placed(Chunk(np.full((320, 1), number + 1, np.float32), 16_000), time_s)
    yield from timeline.rest()


def placed(times_s, origin_s=0.0):
    """Return the samples of such frames in one piece, and the timeline."""
    timeline = Timeline(origin_s)
    chunks = list(chunks_of(timeline, times_s))
    assert all(len(chunk.samples) <= 160_000 for chunk in chunks)
    return np.concatenate([chunk.samples[:, 0] for chunk in chunks]), timeline


def begins_s(samples, number):
    return int(np.argmax(samples == number + 1)) / 16_000


REGULAR = [number * FRAME_S for number in range(500)]


def test_regular_times_change_nothing():
    expected = np.repeat(np.arange(1, 501, dtype=np.float32), 320)
    for times_s in (REGULAR, [time_s + 3600 for time_s in REGULAR], [None] * 500, [0.0] * 500):
        samples, timeline = placed(times_s, None)
        np.testing.assert_array_equal(samples, expected)
        assert timeline.gaps.count == 0


def test_rounding_and_jitter_change_nothing():
    generator = np.random.default_rng(1)
    for jitter_s in (0.001, 0.015, 0.03):
        times_s = [max(0.0, time_s + generator.uniform(-jitter_s, jitter_s)) for time_s in REGULAR]
        samples, _ = placed(times_s)
        assert len(samples) == pytest.approx(160_000, abs=320)
        assert begins_s(samples, 400) == pytest.approx(8.0, abs=0.02)


def test_a_single_wrong_time_changes_nothing():
    for wrong_s in (3.0, 3.05, 4.0, 4.1, 3600.0, 1e15, -1e15):
        times_s = [*REGULAR[:200], wrong_s, *REGULAR[201:]]
        assert len(placed(times_s)[0]) == 160_000


def test_each_of_many_gaps_is_as_long_as_it_is():
    times_s = [time_s + 0.03 * (number // 10) for number, time_s in enumerate(REGULAR)]
    samples, timeline = placed(times_s)
    assert timeline.gaps.count == 49
    assert all(begins_s(samples, number) == pytest.approx(times_s[number], abs=0.02) for number in range(500))


def test_a_clock_that_is_set_back_loses_nothing():
    for again_s in (20.0, 20.3, 14.0):
        times_s = [20.0 + time_s for time_s in REGULAR] + [again_s + time_s for time_s in REGULAR]
        assert len(placed(times_s, None)[0]) == 2 * 160_000
    assert len(placed(REGULAR * 2 + [-3600.0 + time_s for time_s in REGULAR])[0]) == 3 * 160_000


def test_absurd_times_cost_a_day_of_silence_at_most():
    times_s = [number * 36_000.0 for number in range(1, 40) for _ in range(1)]
    timeline = Timeline(None)
    frames_s = [time_s + step for time_s in times_s for step in np.arange(6) * FRAME_S]
    loudest = {float(chunk.samples.max()) for chunk in chunks_of(timeline, frames_s)}  # a day is 5.5 GB
    assert timeline.gaps.total_s <= 24 * 3600
    assert loudest == {float(number) for number in range(39 * 6 + 1)}


@pytest.fixture(scope="module", autouse=True)
def _quiet_encoders():
    av.logging.set_level(av.logging.PANIC)


def test_files_without_a_clock_are_read_as_before():
    file = io.BytesIO()
    soundfile.write(file, piece(3.0), RATE, format="WAV")
    heard, stream = clicks_s(file)
    assert heard == [pytest.approx(0.5, abs=0.001)]
    assert stream.duration_s == 3.0
