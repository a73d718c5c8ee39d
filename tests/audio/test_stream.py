"""Real files in, 16 kHz mono out. Odd files are made here from a real clip by the real encoders."""

import io
import signal
import struct
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from as2d_cli.audio.ffmpeg import AvReader
from as2d_cli.audio.stream import open_audio
from as2d_cli.domain.errors import AudioError

DATA = Path(__file__).parents[1] / "data"
JFK = DATA / "jfk.flac"
OPEN_FILES = Path("/proc/self/fd")


def listen(source):
    stream = open_audio(source)
    samples = np.concatenate(list(stream.blocks()))
    assert samples.dtype == np.float32
    assert samples.ndim == 1
    assert stream.duration_s == len(samples) / 16_000
    return samples, stream


def encoded(samples, rate=16_000, **options):
    file = io.BytesIO()
    soundfile.write(file, samples, rate, **{"format": "WAV", "subtype": "FLOAT", **options})
    return file.getvalue()


def with_av(samples, container, codec, rate=16_000, video=False, layout="mono"):
    """Return `samples`, the same in all channels, encoded by FFmpeg."""
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        if video:
            picture = output.add_stream("mpeg4", rate=5)
            picture.width = picture.height = 32
            picture.pix_fmt = "yuv420p"
        stream = output.add_stream(codec, rate=rate, layout=layout) if samples is not None else None
        if video:
            for _ in range(5):
                output.mux(
                    picture.encode(av.VideoFrame.from_ndarray(np.zeros((48, 32), np.uint8), "yuv420p"))
                )
            output.mux(picture.encode())
        if stream is not None:
            spread = np.repeat(samples, len(av.AudioLayout(layout).channels))[np.newaxis]
            frame = av.AudioFrame.from_ndarray(spread, format="flt", layout=layout)
            frame.sample_rate = rate
            for resampled in av.AudioResampler(stream.format, layout, rate).resample(frame):
                output.mux(stream.encode(resampled))
            output.mux(stream.encode())
    return file.getvalue()


@pytest.fixture(scope="module")
def jfk():
    return soundfile.read(JFK, dtype="float32")[0]


@pytest.fixture
def disguised(tmp_path):
    """Write bytes under a name that says nothing true about them."""

    def write(content):
        path = tmp_path / "speech.gsm"
        path.write_bytes(content)
        return path

    return write


def similarity(one, other):
    length = min(len(one), len(other))
    return float(np.corrcoef(one[:length], other[:length])[0, 1])


def test_audio_at_16_khz_passes_through_unchanged(jfk):
    samples, stream = listen(JFK)
    np.testing.assert_array_equal(samples, jfk)
    assert stream.warnings == []
    assert stream.expected_s == 11.0


def test_blocks_stay_small_whatever_the_length_of_the_file():
    with open_audio(DATA / "printing.opus") as stream:
        lengths = [len(block) for block in stream.blocks()]
    assert max(lengths) <= 10 * 16_000
    assert sum(lengths) == pytest.approx(69.2 * 16_000, abs=160)


@pytest.mark.parametrize(
    "subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"]
)
def test_every_sample_format_gives_the_same_sound(jfk, disguised, subtype):
    samples, _ = listen(disguised(encoded(jfk, subtype=subtype)))
    assert len(samples) == len(jfk)
    assert similarity(samples, jfk) > 0.999


@pytest.mark.parametrize("format_", ["FLAC", "AIFF", "AU", "CAF", "W64", "RF64"])
def test_libsndfile_containers_are_known_by_their_content(jfk, disguised, format_):
    samples, _ = listen(disguised(encoded(jfk, format=format_, subtype="PCM_16")))
    assert len(samples) == len(jfk)
    assert similarity(samples, jfk) > 0.999


@pytest.mark.parametrize(
    ("container", "codec"), [("mp4", "aac"), ("ipod", "alac"), ("webm", "libopus"), ("adts", "aac")]
)
def test_what_libsndfile_cannot_read_goes_to_ffmpeg(jfk, disguised, container, codec):
    samples, stream = listen(disguised(with_av(jfk, container, codec)))
    assert stream.duration_s == pytest.approx(11.0, abs=0.2)
    assert np.sqrt(np.mean(samples**2)) == pytest.approx(np.sqrt(np.mean(jfk**2)), rel=0.05)
    assert stream.warnings == []


@pytest.mark.parametrize("format_", [("MP3", "MPEG_LAYER_III"), ("OGG", "VORBIS"), ("OGG", "OPUS")])
def test_lossy_files_keep_their_length(jfk, disguised, format_):
    samples, stream = listen(disguised(encoded(jfk, format=format_[0], subtype=format_[1])))
    assert stream.duration_s == pytest.approx(11.0, abs=0.06)
    assert np.sqrt(np.mean(samples**2)) == pytest.approx(np.sqrt(np.mean(jfk**2)), rel=0.05)


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000, 192_000])
def test_any_rate_becomes_16_khz_without_shift(disguised, rate):
    seconds = np.arange(3 * rate) / rate
    samples, _ = listen(disguised(encoded(np.sin(2 * np.pi * 440 * seconds), rate=rate)))
    expected = np.sin(2 * np.pi * 440 * np.arange(3 * 16_000) / 16_000)
    assert len(samples) == len(expected)
    np.testing.assert_allclose(samples[500:-500], expected[500:-500], atol=2e-3)


def test_channels_are_averaged(jfk, disguised):
    samples, stream = listen(disguised(encoded(np.stack([jfk, jfk / 2], axis=1))))
    np.testing.assert_allclose(samples, jfk * 0.75, atol=1e-6)
    assert stream.warnings == []


def test_the_eight_channels_of_a_film_are_averaged(jfk, disguised):
    samples, stream = listen(disguised(with_av(jfk, "ipod", "alac", layout="7.1(wide)")))
    assert stream.duration_s == pytest.approx(11.0, abs=0.2)
    assert similarity(samples, jfk) > 0.999
    assert stream.warnings == []


def test_more_channels_than_ffmpeg_has_names_for_are_averaged(jfk, disguised):
    content = encoded(np.tile(jfk[:48_000, np.newaxis], 34), format="OGG", subtype="VORBIS")
    samples, _ = listen(disguised(content))
    assert similarity(samples, jfk) > 0.95


def test_channels_that_cancel_are_not_averaged_away(jfk, disguised):
    samples, stream = listen(disguised(encoded(np.stack([jfk, -jfk], axis=1))))
    np.testing.assert_allclose(np.abs(samples), np.abs(jfk), atol=1e-6)
    assert "cancel" in stream.warnings[0]


def test_samples_that_are_not_numbers_become_silence_and_are_told(jfk, disguised):
    broken = jfk.copy()
    broken[8_000:8_100] = np.nan
    broken[9_000] = np.inf
    samples, stream = listen(disguised(encoded(broken)))
    assert not samples[8_000:8_100].any()
    assert samples[9_000] == 0.0
    np.testing.assert_array_equal(samples[9_001:], jfk[9_001:])
    assert "101 sample(s)" in stream.warnings[0]
    assert "0.50 s" in stream.warnings[0]


def test_clipping_is_told(jfk, disguised):
    _, stream = listen(disguised(encoded(np.clip(jfk * 30, -1, 1))))
    assert "clipped" in stream.warnings[0]


def test_absurd_loudness_is_limited_and_told(jfk, disguised):
    samples, stream = listen(disguised(encoded(jfk * 1e30)))
    assert np.abs(samples).max() == 8.0
    assert "times full scale" in stream.warnings[0]


@pytest.mark.parametrize(("size", "warnings"), [(0, 1), (0xFFFFFFFF, 0)])
def test_a_wav_whose_writer_did_not_know_its_length_is_read_to_the_end(jfk, size, warnings):
    content = bytearray(encoded(jfk, subtype="PCM_16"))
    place = content.index(b"data") + 4
    content[place : place + 4] = struct.pack("<I", size)
    samples, stream = listen(io.BytesIO(bytes(content)))
    assert len(samples) == len(jfk)
    assert len(stream.warnings) == warnings


def test_a_cut_wav_gives_what_is_there_and_says_so(jfk, disguised):
    content = encoded(jfk, subtype="PCM_16")
    _, stream = listen(disguised(content[: 44 + 88_000 * 2]))
    assert stream.duration_s == pytest.approx(5.5, abs=0.01)
    assert "the file says 11.0 s, only 5.5 s" in stream.warnings[0]


def test_a_cut_mp3_gives_what_is_there_and_says_so(jfk, disguised, capfd):
    content = encoded(jfk, format="MP3", subtype="MPEG_LAYER_III")
    _, stream = listen(disguised(content[: len(content) // 2]))
    assert 4.0 < stream.duration_s < 7.0
    assert "cut short" in stream.warnings[0]
    assert capfd.readouterr().err == ""


def test_decoding_goes_on_after_a_damaged_place(jfk, disguised):
    content = bytearray(JFK.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2_000] = bytes(2_000)
    samples, stream = listen(disguised(bytes(content)))
    assert stream.duration_s > 9.5  # how much of the rest is found depends on FFmpeg's version
    np.testing.assert_allclose(samples[-16_000:], jfk[-16_000:], atol=1e-4)
    assert "damaged" in stream.warnings[0]


def test_what_follows_a_damaged_place_keeps_its_time(jfk, disguised):
    content = bytearray(encoded(jfk, format="OGG", subtype="VORBIS"))
    middle = len(content) // 2
    content[middle : middle + 3_000] = bytes(3_000)
    samples, stream = listen(disguised(bytes(content)))
    assert stream.duration_s == pytest.approx(11.0, abs=0.05)
    assert similarity(samples[-16_000:], jfk[-16_000:]) > 0.9
    assert not samples[4 * 16_000 : 8 * 16_000].all()
    assert "damaged in 1 place" in stream.warnings[0]


def test_all_of_several_joined_ogg_streams_is_heard():
    content = (DATA / "fleurs-de-004.ogg").read_bytes()
    _, once = listen(io.BytesIO(content))
    _, twice = listen(io.BytesIO(content + content))
    assert twice.duration_s == pytest.approx(2 * once.duration_s, abs=0.1)


def test_the_audio_of_a_film_is_found_behind_its_pictures(jfk, disguised):
    _, stream = listen(disguised(with_av(jfk, "mp4", "aac", video=True)))
    assert stream.duration_s == pytest.approx(11.0, abs=0.2)


def test_a_film_without_sound_is_told_apart(disguised):
    with pytest.raises(AudioError, match=r"speech\.gsm: no audio stream"):
        open_audio(disguised(with_av(None, "mp4", None, video=True)))


@pytest.mark.parametrize(
    "content",
    [
        b"hello, this is only text\n" * 200,
        b"RIFF\xff\xff\xff\xffWAVEjunk" + bytes(range(256)) * 8,
        b"#EXTM3U\n#EXTINF:1,\n" + bytes(JFK) + b"\n",
        b"ffconcat version 1.0\nfile jfk.flac\n",
        encoded(np.zeros(100))[:24] + bytes(4) + encoded(np.zeros(100))[28:],
    ],
    ids=["text", "broken header", "playlist", "concat list", "no sample rate"],
)
def test_what_is_not_audio_is_one_clear_line(disguised, content, monkeypatch):
    monkeypatch.chdir(DATA)
    with pytest.raises(AudioError, match=r"speech\.gsm: not audio") as caught:
        open_audio(disguised(content))
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_a_file_without_samples_is_an_error(disguised):
    with pytest.raises(AudioError, match="holds no audio samples"):
        listen(disguised(encoded(np.zeros(0))))


def test_one_sample_is_audio(disguised):
    samples, _ = listen(disguised(encoded(np.full(1, 0.5))))
    assert samples.tolist() == [0.5]


def test_a_sample_rate_that_cannot_be_is_an_error(disguised):
    with pytest.raises(AudioError, match="sample rate of 3 Hz"):
        listen(disguised(encoded(np.zeros(100), rate=3)))


def test_bytes_that_cannot_seek_are_read_in_any_container(jfk):
    command = [sys.executable, "-c", "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(with_av(jfk, "mp4", "aac"))
        process.stdin.close()
        _, stream = listen(process.stdout)
        assert not process.stdout.closed
    assert stream.duration_s == pytest.approx(11.0, abs=0.2)


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="needs a list of open files")
def test_an_abandoned_stream_lets_go_of_its_file(disguised):
    before = len(list(OPEN_FILES.iterdir()))
    for _ in range(3):
        with open_audio(JFK) as stream:
            next(stream.blocks())
            assert stream.duration_s is None
    assert len(list(OPEN_FILES.iterdir())) == before


@pytest.mark.parametrize("n_bytes", [4, 30, 100, 1_000])
def test_random_damage_gives_sound_audio_or_one_clear_error(jfk, n_bytes):
    generator = np.random.default_rng(n_bytes)
    originals = [with_av(jfk[:32_000], "mp4", "aac")]
    for format_, subtype in [
        ("WAV", "PCM_16"),
        ("FLAC", "PCM_16"),
        ("OGG", "VORBIS"),
        ("MP3", "MPEG_LAYER_III"),
    ]:
        originals.append(encoded(jfk[:32_000], format=format_, subtype=subtype))
    outcomes = []
    for original in originals * 5:
        try:
            samples, _ = listen(io.BytesIO(damaged(original, n_bytes, generator)))
            outcomes.append(bool(np.isfinite(samples).all()))
        except AudioError as error:
            outcomes.append("\n" not in error.message)
    assert all(outcomes)


def damaged(content, n_bytes, generator):
    array = np.frombuffer(content, np.uint8).copy()
    array[generator.integers(0, len(array), n_bytes)] = generator.integers(0, 256, n_bytes)
    return array.tobytes()


def test_doubles_that_no_float_can_hold_are_no_warning_of_numpy():
    doubles = np.full(16000, 0.1)
    doubles[[100, 200]] = 1e300, -1e300
    doubles.view(np.uint64)[300] = 0x7FF0000000000001  # a signalling NaN
    chunks = AvReader(io.BytesIO(encoded(doubles, subtype="DOUBLE"))).chunks()
    samples = np.concatenate([chunk.samples for chunk in chunks])[:, 0]
    assert np.flatnonzero(~np.isfinite(samples)).tolist() == [100, 200, 300]


def test_of_several_tracks_the_first_is_heard_and_that_is_told(jfk):
    file = io.BytesIO()
    with av.open(file, "w", format="matroska") as output:
        tracks = [
            (output.add_stream("pcm_s16le", rate=16_000, layout="mono"), part) for part in (jfk, 0 * jfk)
        ]
        for stream, part in tracks:
            frame = av.AudioFrame.from_ndarray((part * 32767).astype(np.int16)[None], "s16", "mono")
            frame.sample_rate = 16_000
            output.mux([*stream.encode(frame), *stream.encode()])
    samples, stream = listen(file)
    assert np.allclose(samples, jfk, atol=1e-3)
    assert stream.warnings == ["has 2 audio tracks; only the first was heard"]


class Interrupted(io.BytesIO):
    """A file at each read of which by native code somebody presses Ctrl-C."""

    def readinto(self, buffer):
        signal.raise_signal(signal.SIGINT)
        return super().readinto(buffer)


def test_ctrl_c_while_libsndfile_reads_is_neither_lost_nor_printed(capfd):
    with pytest.raises(KeyboardInterrupt):
        listen(Interrupted(encoded(np.zeros(16_000, np.float32))))
    assert capfd.readouterr().err == ""
