"""Text that is wrong without a word about it: words lost and invented, with rescue, without, and elsewhere.

    pip install ".[test]" faster-whisper
    python tools/measure/trust.py FOLDER... [--only joined_] [--ways plain rescue faster-whisper] [--out FILE]

Each FOLDER holds audio files and a manifest.jsonl. The language is told. Lost and invented are words in runs
of four and more that only the reference or only the text has. faster-whisper has the same weights and its
defaults (beam of 5, temperatures as fallback). Time is that of all processors.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import jiwer
from clips import Clip

from as2d_cli import Transcriber
from as2d_cli.models.fetch import fetch
from as2d_cli.models.registry import load_registry

_RUN = 4


def main() -> None:
    arguments = _arguments()
    clips = [clip for folder in arguments.folders for clip in _clips(folder, arguments.only)]
    found: dict[str, dict[Path, str]] = {}
    for way in arguments.ways:
        before_s = _processor_s()
        found[way] = _WAYS[way](clips, arguments)
        print(f"{way}: {_processor_s() - before_s:.0f} s of the processors")
    if arguments.out:
        rows = (
            {"file": str(clip.path), **{way: texts[clip.path] for way, texts in found.items()}}
            for clip in clips
        )
        arguments.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    print(f"{'':24} {'':15} {'words':>6} {'WER':>7} {'lost':>5} {'invented':>8}")
    for folder in arguments.folders:
        chosen = [clip for clip in clips if clip.path.parent == folder]
        for way, texts in found.items():
            print(f"{folder.name:24} {way:15} {_line([(clip, texts[clip.path]) for clip in chosen])}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", default="", help="files whose names begin so")
    parser.add_argument("--ways", nargs="+", choices=list(_WAYS), default=list(_WAYS))
    parser.add_argument("--model", default="whisper-base")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--option", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"))
    parser.add_argument("--out", type=Path, help="write all texts here (JSON lines)")
    return parser.parse_args()


def _clips(folder: Path, prefix: str) -> Iterable[Clip]:
    for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        if item["file"].startswith(prefix) and item.get("text") and item.get("lang"):
            yield Clip(folder / item["file"], item["text"], item["lang"], item.get("gold", ""))


def _ours(clips: list[Clip], arguments: argparse.Namespace, *, rescue: bool) -> dict[Path, str]:
    texts = {}
    for language in sorted({clip.language for clip in clips}):
        with Transcriber(
            model=arguments.model,
            drafter="none",
            language=language,
            rescue=rescue,
            threads=arguments.threads,
            **dict(arguments.option),
        ) as transcriber:
            for clip in (one for one in clips if one.language == language):
                texts[clip.path] = transcriber.transcribe(clip.path).transcript.text
    return texts


def _plain(clips: list[Clip], arguments: argparse.Namespace) -> dict[Path, str]:
    return _ours(clips, arguments, rescue=False)


def _rescued(clips: list[Clip], arguments: argparse.Namespace) -> dict[Path, str]:
    return _ours(clips, arguments, rescue=True)


def _faster_whisper(clips: list[Clip], arguments: argparse.Namespace) -> dict[Path, str]:
    from faster_whisper import WhisperModel

    with tempfile.TemporaryDirectory() as folder:
        source = fetch(load_registry().model(arguments.model), Path(folder))
        model = WhisperModel(str(source), device="cpu", compute_type="int8", cpu_threads=arguments.threads)
    return {
        clip.path: "".join(one.text for one in model.transcribe(str(clip.path), language=clip.language)[0])
        for clip in clips
    }


def _line(pairs: list[tuple[Clip, str]]) -> str:
    found = [jiwer.process_words(clip.normalised(clip.text), clip.normalised(text)) for clip, text in pairs]
    words = sum(len(reference) for one in found for reference in one.references)
    errors = sum(one.substitutions + one.deletions + one.insertions for one in found)
    runs = [chunk for one in found for chunks in one.alignments for chunk in chunks]
    lost = sum(
        size for run in runs if run.type == "delete" and (size := run.ref_end_idx - run.ref_start_idx) >= _RUN
    )
    invented = sum(
        size for run in runs if run.type == "insert" and (size := run.hyp_end_idx - run.hyp_start_idx) >= _RUN
    )
    return f"{words:6} {errors / words:7.2%} {lost:5} {invented:8}"


def _processor_s() -> float:
    """Return what this process and those that it ended have taken."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


_WAYS: dict[str, Callable[[list[Clip], argparse.Namespace], dict[Path, str]]] = {
    "plain": _plain,
    "rescue": _rescued,
    "faster-whisper": _faster_whisper,
}


if __name__ == "__main__":
    main()
