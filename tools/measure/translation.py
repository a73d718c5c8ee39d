"""Translation into English beside faster-whisper's: same weights, same windows, greedy, no fallback.

    pip install ".[test]" faster-whisper
    python tools/measure/translation.py FOLDER... [--target whisper-base] [--theirs float32 int8]

Each FOLDER holds audio files and a manifest.jsonl; used are the entries with a `translation` of all that is
said. Windows are those of as2d; both are told the language that is spoken. A text of the kind that a decoder
writes without end fills the corpus scores alone, so they are also given without the clips in which one does.
"""

from __future__ import annotations

import argparse
import json
import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import sacrebleu
from beside import faster_whisper_texts, target_texts

from as2d_cli.audio.stream import open_audio
from as2d_cli.audio.windows import split
from as2d_cli.domain.types import Request
from as2d_cli.models.registry import load_registry
from as2d_cli.transcripts.segments import join_texts


@dataclass(frozen=True)
class Clip:
    path: Path
    language: str
    reference: str


def main() -> None:
    arguments = _arguments()
    entry = load_registry().model(arguments.target)
    clips = list(_clips(arguments.folders))
    windows = [list(split(open_audio(clip.path).blocks())) for clip in clips]
    requests = [Request("translate", clip.language) for clip in clips]
    found = {"as2d": target_texts(entry, requests, windows, arguments.threads)}
    for kind in arguments.theirs:
        found[f"faster-whisper {kind}"] = faster_whisper_texts(
            entry, requests, windows, threads=arguments.threads, compute_type=kind
        )
    if arguments.out:
        arguments.out.write_text(json.dumps(found, ensure_ascii=False, indent=1), encoding="utf-8")
    ours = [text for texts in found["as2d"] for text in texts]
    joined = {decoder: list(map(join_texts, texts)) for decoder, texts in found.items()}
    everything = range(len(clips))
    sane = [i for i in everything if not any(_loops(texts[i]) for texts in joined.values())]
    groups = {"all": list(everything), "without loops": sane}
    for language in sorted({clip.language for clip in clips}):
        groups[f"{language}, without loops"] = [i for i in sane if clips[i].language == language]
    for decoder, texts in joined.items():
        flat = [text for one in found[decoder] for text in one]
        equal = sum(a.strip() == b.strip() for a, b in zip(ours, flat, strict=True))
        print(f"{decoder}: {equal} of {len(flat)} windows with as2d's text, loops in", end=" ")
        print([clips[i].path.name for i in everything if _loops(texts[i])])
        for name, chosen in groups.items():
            if chosen:
                bleu, chrf = _bleu(texts, clips, chosen), _chrf(texts, clips, chosen)
                print(f"  {name:18} {len(chosen):3} clips   BLEU {bleu:5.1f}   chrF {chrf:5.1f}")
        print(
            "  as2d's chrF less this one's, without loops: {:+.1f} ({:+.1f} to {:+.1f})".format(
                *_difference(joined["as2d"], texts, clips, sane)
            )
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--target", default="whisper-base")
    parser.add_argument("--theirs", nargs="*", default=["float32", "int8"], help="compute types")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="write the texts of each window here (JSON)")
    return parser.parse_args()


def _clips(folders: Sequence[Path]) -> Iterator[Clip]:
    for folder in folders:
        for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
            item = json.loads(line)
            if item.get("translation") and "summary" not in item.get("translation_by", ""):
                yield Clip(folder / item["file"], item["lang"], item["translation"])


def _loops(text: str) -> bool:
    """Tell whether a text repeats itself, as openai/whisper does before it decodes a window again."""
    data = text.encode()
    return len(data) / len(zlib.compress(data)) > 2.4


def _bleu(texts: Sequence[str], clips: Sequence[Clip], chosen: Sequence[int]) -> float:
    """Return BLEU of the corpus, by sacrebleu's defaults (13a, one reference, with case)."""
    references = [[clips[i].reference for i in chosen]]
    return float(sacrebleu.corpus_bleu([texts[i] for i in chosen], references).score)


def _chrf(texts: Sequence[str], clips: Sequence[Clip], chosen: Sequence[int]) -> float:
    """Return chrF of the corpus, by sacrebleu's defaults (chrF2)."""
    references = [[clips[i].reference for i in chosen]]
    return float(sacrebleu.corpus_chrf([texts[i] for i in chosen], references).score)


def _difference(
    ours: Sequence[str], theirs: Sequence[str], clips: Sequence[Clip], chosen: Sequence[int]
) -> tuple[float, float, float]:
    """Return the difference in chrF with its 95 % interval, by paired bootstrap over the clips."""
    draws = [random.Random(seed).choices(chosen, k=len(chosen)) for seed in range(200)]
    found, *drawn = [_chrf(ours, clips, some) - _chrf(theirs, clips, some) for some in [chosen, *draws]]
    drawn.sort()
    return found, drawn[5], drawn[-6]


if __name__ == "__main__":
    main()
