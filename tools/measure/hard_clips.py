"""Writes hard recordings, made from easy ones: noise, echo, another voice, clipping, a telephone, silence.

    python tools/measure/hard_clips.py FOLDER OUT [--each 7]

FOLDER holds audio files and a manifest.jsonl; OUT gets as many clips of each kind, and a manifest of its own.
The same FOLDER gives the same clips.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import soundfile
import soxr
from clips import read_clips
from numpy.typing import NDArray

from as2d_cli.audio.stream import open_audio
from as2d_cli.domain.types import SAMPLE_RATE_HZ

Sound = NDArray[np.float32]
Random = np.random.Generator
_SHORTEST_S, _LONGEST_S = 4.0, 20.0
_PEAK = 0.7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--each", type=int, default=7)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    clips = [(clip, _read(clip.path)) for clip in read_clips([arguments.folder]) if clip.strict]
    clips = [one for one in clips if _SHORTEST_S <= len(one[1]) / SAMPLE_RATE_HZ <= _LONGEST_S]
    lines = []
    for place, (kind, spoil) in enumerate(_KINDS.items()):
        for number in range(arguments.each):
            index = place * arguments.each + number
            clip, sound = clips[index % len(clips)]
            _, other = clips[(index + len(clips) // 2) % len(clips)]
            name = f"{kind}_{number}.flac"
            spoilt = spoil(sound, other, np.random.default_rng(zlib.crc32(name.encode())))
            spoilt *= _PEAK / np.abs(spoilt).max()
            soundfile.write(arguments.out / name, spoilt, SAMPLE_RATE_HZ, subtype="PCM_16")
            lines.append({"file": name, "text": clip.text, "lang": clip.language, "gold": clip.gold})
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (arguments.out / "manifest.jsonl").write_text(text, encoding="utf-8")


def _read(path: Path) -> Sound:
    return np.concatenate(list(open_audio(path).blocks()))


def _at(sound: Sound, noise: Sound, db: float) -> Sound:
    """Return `sound` with `noise` so many dB below it."""
    noise = np.resize(noise, len(sound))
    gain = np.sqrt(np.mean(sound**2) / np.mean(noise**2)) * 10 ** (-db / 20)
    return sound + np.float32(gain) * noise


def _noisy(sound: Sound, other: Sound, random: Random) -> Sound:
    """Pink noise at 0 to 10 dB."""
    spectrum = np.fft.rfft(random.normal(size=len(sound)))
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    return _at(sound, np.fft.irfft(spectrum, len(sound)).astype(np.float32), random.uniform(0, 10))


def _echoing(sound: Sound, other: Sound, random: Random) -> Sound:
    """A room that takes 0.6 to 1.2 s to fall silent (60 dB)."""
    decay_s = random.uniform(0.6, 1.2)
    times = np.arange(int(decay_s * SAMPLE_RATE_HZ)) / SAMPLE_RATE_HZ
    room = random.normal(size=len(times)) * 10 ** (-3 * times / decay_s)
    room[0] = 8.0
    length = len(sound) + len(room)
    wet = np.fft.irfft(np.fft.rfft(sound, length) * np.fft.rfft(room, length), length)
    return wet[: len(sound)].astype(np.float32)


def _crossed(sound: Sound, other: Sound, random: Random) -> Sound:
    """Somebody else at 3 to 12 dB below."""
    return _at(sound, other, random.uniform(3, 12))


def _clipped(sound: Sound, other: Sound, random: Random) -> Sound:
    """All above a tenth of the loudest, or less, is cut off."""
    return np.clip(sound * random.uniform(10, 40), -np.abs(sound).max(), np.abs(sound).max())


def _telephoned(sound: Sound, other: Sound, random: Random) -> Sound:
    """8 kHz, 300 to 3,400 Hz, 8 bits by the mu-law, noise 20 dB below."""
    narrow = soxr.resample(sound, SAMPLE_RATE_HZ, 8000)
    spectrum, hz = np.fft.rfft(narrow), np.fft.rfftfreq(len(narrow), 1 / 8000)
    spectrum[(hz < 300) | (hz > 3400)] = 0
    narrow = np.fft.irfft(spectrum, len(narrow))
    narrow = narrow / np.abs(narrow).max()
    law = np.sign(narrow) * np.log1p(255 * np.abs(narrow)) / np.log(256)
    law = np.round(law * 127) / 127
    narrow = np.sign(law) * (256 ** np.abs(law) - 1) / 255
    wide = soxr.resample(narrow.astype(np.float32), 8000, SAMPLE_RATE_HZ)
    return _at(wide, random.normal(size=len(wide)).astype(np.float32), 20)


def _late(sound: Sound, other: Sound, random: Random) -> Sound:
    """20 to 40 s of a quiet room before it, 50 dB below speech."""
    level = np.sqrt(np.mean(sound**2)) * 10 ** (-50 / 20)

    def room() -> Sound:
        return random.normal(0, level, int(random.uniform(20, 40) * SAMPLE_RATE_HZ)).astype(np.float32)

    return np.concatenate([room(), sound])


_KINDS: dict[str, Callable[[Sound, Sound, Random], Sound]] = {
    "noise": _noisy,
    "echo": _echoing,
    "cross": _crossed,
    "clipped": _clipped,
    "telephone": _telephoned,
    "late": _late,
}


if __name__ == "__main__":
    main()
