"""Word error rate of whole files, read, cut, detected and joined as `as2d transcribe` does it by default.

    python tools/measure/whole_files.py FOLDER... [--target whisper-base] [--backend auto] [--out FILE]

Each FOLDER holds audio files and a manifest.jsonl. The language is told, so that a wrong guess does not count
as a wrong text. Unlike `accuracy.py` this hears through the speech detector and the downmix, so two commits
that differ in these can be compared. It uses the public API alone: PYTHONPATH may name an older copy.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from clips import Clip, read_clips, word_error_rate

from as2d_cli import Transcriber


def main() -> None:
    arguments = _arguments()
    clips = list(read_clips(arguments.folders))
    texts: dict[Path, str] = {}
    for language in sorted({clip.language for clip in clips}):
        with Transcriber(
            model=arguments.target, drafter="none", language=language, backend=arguments.backend
        ) as transcriber:
            for clip in (one for one in clips if one.language == language):
                texts[clip.path] = transcriber.transcribe(clip.path).transcript.text
    if arguments.out:
        lines = (json.dumps({"file": str(path), "text": text}) + "\n" for path, text in texts.items())
        arguments.out.write_text("".join(lines))
    for folder in arguments.folders:
        _print(folder.name, [clip for clip in clips if clip.path.parent == folder], texts)
    _print("all", clips, texts)


def _print(name: str, clips: list[Clip], texts: dict[Path, str]) -> None:
    score = word_error_rate([(clip, texts[clip.path]) for clip in clips])
    print(f"{name:16} {len(clips):4} clips {score:7.2%}  {sum(not texts[clip.path] for clip in clips)} empty")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--target", default="whisper-base")
    parser.add_argument("--backend", help="of the target; left out, that of this machine")
    parser.add_argument("--out", type=Path, help="write the text of each file here (JSON lines)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
