"""Short sound files of every format that the libraries can write, and ways to damage them."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import av
import numpy as np
import soundfile

SECONDS = 0.6
DATA = Path(__file__).parents[2] / "tests" / "data"

_AV_FORMATS = [
    *(("mp4", "aac"), ("ipod", "alac"), ("mov", "pcm_s16le"), ("webm", "libopus"), ("matroska", "aac")),
    *(("avi", "pcm_s16le"), ("mpegts", "aac"), ("adts", "aac"), ("asf", "wmav2"), ("ac3", "ac3")),
    *(("mp2", "mp2"), ("mp3", "libmp3lame"), ("wv", "wavpack"), ("tta", "tta"), ("flv", "aac")),
]
EXTREMES = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


def seeds() -> list[tuple[str, bytes]]:
    """Return small files by name, of each format that the libraries can write."""
    samples, rate_hz = soundfile.read(DATA / "jfk.flac", dtype="float32", frames=int(SECONDS * 16000))
    found = [*_sndfile_seeds(samples, rate_hz), *_av_seeds(samples, rate_hz)]
    clips = [path for path in sorted(DATA.iterdir()) if path.suffix in {".flac", ".ogg", ".opus"}]
    return found + [(path.name, path.read_bytes()[:20_000]) for path in clips]


def _sndfile_seeds(samples: np.ndarray, rate_hz: int) -> Iterator[tuple[str, bytes]]:
    headless = {"RAW", "SD2"}  # nothing to be known by; what SD2 has stands in a file of its own, here "._"
    for kind in sorted(soundfile.available_formats().keys() - headless):
        for subtype in soundfile.available_subtypes(kind):
            file = io.BytesIO()
            stereo = np.stack([samples, -samples], axis=1) if kind == "FLAC" else samples
            with suppress(soundfile.LibsndfileError, ValueError, TypeError):
                soundfile.write(file, stereo, rate_hz, subtype=subtype, format=kind)
                yield f"{kind}-{subtype}", file.getvalue()


def _av_seeds(samples: np.ndarray, rate_hz: int) -> Iterator[tuple[str, bytes]]:
    for container, codec in _AV_FORMATS:
        file = io.BytesIO()
        with suppress(av.FFmpegError, ValueError, OSError):
            _encode(file, container, codec, samples, rate_hz)
            yield f"{container}-{codec}", file.getvalue()


def _encode(file: io.BytesIO, container: str, codec: str, samples: np.ndarray, rate_hz: int) -> None:
    with av.open(file, "w", format=container) as output:
        stream = output.add_stream(codec, rate=48000 if codec in {"libopus", "ac3", "wmav2"} else rate_hz)
        stream.bit_rate = 64000
        stream.layout = "mono"
        whole = (samples[None] * 32767).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(whole, format="s16", layout="mono")
        frame.sample_rate = rate_hz
        for packet in (*stream.encode(frame), *stream.encode(None)):
            output.mux(packet)


def mutated(number: int, sources: list[tuple[str, bytes]]) -> tuple[str, bytes]:
    """Return the name of the seed and the bytes of input `number`."""
    draw = random.Random(number)
    name, data = draw.choice(sources)
    return name, damage(draw, data, [content for _, content in sources])


def damage(draw: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """Return `data` with some of its bytes changed, repeated, removed or replaced by another file's."""
    damaged = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 4, 16])):
        _MUTATIONS[draw.randrange(len(_MUTATIONS))](draw, damaged)
        if draw.random() < 0.05:
            other = draw.choice(others)
            place = _place(draw, damaged)
            damaged[place:] = other[_place(draw, bytearray(other)) :]
    return bytes(damaged)


def _place(draw: random.Random, data: bytearray) -> int:
    """Return a place in the file; every other one is in its head, where the sizes and types are."""
    return draw.randrange(min(len(data), 200 if draw.random() < 0.5 else len(data)) or 1)


def _flip(draw: random.Random, data: bytearray) -> None:
    if data:
        data[_place(draw, data)] ^= 1 << draw.randrange(8)


def _set_number(draw: random.Random, data: bytearray) -> None:
    width = draw.choice([1, 2, 4, 8])
    value = draw.choice([*EXTREMES, draw.getrandbits(32)]) & ((1 << 8 * width) - 1)
    place = _place(draw, data)
    data[place : place + width] = value.to_bytes(width, draw.choice(["little", "big"]))


def _scramble(draw: random.Random, data: bytearray) -> None:
    place, size = _place(draw, data), draw.randrange(1, 64)
    data[place : place + size] = draw.randbytes(size)


def _remove(draw: random.Random, data: bytearray) -> None:
    place = _place(draw, data)
    del data[place : place + draw.choice([1, 2, 7, 100, 5000])]


def _repeat(draw: random.Random, data: bytearray) -> None:
    place, size = _place(draw, data), draw.choice([1, 4, 100, 3000])
    data[place:place] = data[place : place + size] * draw.choice([1, 2, 8])


def _cut(draw: random.Random, data: bytearray) -> None:
    del data[_place(draw, data) :]


_MUTATIONS: list[Callable[[random.Random, bytearray], None]] = [
    *(_flip, _flip, _set_number, _set_number, _set_number, _scramble, _remove, _repeat, _cut)
]
