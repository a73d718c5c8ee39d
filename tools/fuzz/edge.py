"""What becomes of odd files: one run over a folder, each file held against what is expected of it.

    pip install ".[test]"
    python tools/fuzz/edge.py FOLDER [-- OPTIONS OF as2d transcribe]

FOLDER holds files and a manifest.jsonl: per line `file`, `text` (what is said), `note` and `expect`, which
begins with one of the keys of `JUDGES`. Prints a Markdown table; exit code 1 if a file is not as expected.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import jiwer
import pysubs2
import webvtt
from jsonschema import Draft202012Validator
from whisper_normalizer.english import EnglishTextNormalizer

from as2d_cli.transcripts.formats import FORMATS

AS2D = Path(sys.executable).with_name("as2d")
SCHEMA = json.loads(
    (resources.files("as2d_cli.transcripts") / "transcript.schema.json").read_text(encoding="utf-8")
)
NORMALISE = EnglishTextNormalizer()
GOOD, ROUGH = 0.3, 0.6
"""Word error rates up to which a text is taken for what was said, and for what was said distorted."""
MOST_WORDS_PER_S = 5.0
SHOWN = 70


@dataclass(frozen=True)
class Case:
    item: dict[str, Any]
    record: dict[str, Any]
    outputs: Path

    @property
    def text(self) -> str:
        return str(self.record.get("text", ""))

    @property
    def reference(self) -> str:
        """What is said: the manifest's text, or what its note has in quotes."""
        quoted = re.search('"(.+)"', self.item["note"])
        return str(self.item["text"] or (quoted[1] if quoted else ""))

    @property
    def error_rate(self) -> float:
        """Of words; where the reference is only how the text begins, of the beginning."""
        said, heard = NORMALISE(self.reference).split(), NORMALISE(self.text).split()
        compared = heard[: len(said)] if "(prefix)" in self.item["expect"] else heard
        return float(jiwer.wer(" ".join(said), " ".join(compared)))


def _is_error(case: Case) -> bool:
    """One line that says why, about what was expected; and nothing written."""
    message = str(case.record.get("error", ""))
    wanted = case.item["expect"].partition(":")[2].strip()
    return bool(message) and "\n" not in message and wanted in message and not _written(case)


def _is_empty(case: Case) -> bool:
    return _is_whole(case) and case.record["text"] == "" and case.record["segments"] == []


def _is_text(case: Case, most: float = GOOD) -> bool:
    is_told = "NaN" not in case.item["expect"] or "not numbers" in " ".join(case.record.get("warnings", ()))
    return _is_whole(case) and case.error_rate <= most and is_told


def _is_short(case: Case) -> bool:
    words = len(case.text.split())
    return _is_whole(case) and words <= MOST_WORDS_PER_S * case.item["duration_s"] and not _is_looped(case)


def _is_looped(case: Case) -> bool:
    return any("repeats itself" in warning for warning in case.record["warnings"])


JUDGES: dict[str, Callable[[Case], bool]] = {
    "transcribe approximately": lambda case: _is_text(case, ROUGH),
    "transcribe": _is_text,
    "clear error": _is_error,
    "empty text or clear error": lambda case: _is_error(case) or _is_empty(case),
    "empty text": _is_empty,
    "decode or clear error": lambda case: _is_error(case) or _is_whole(case),
    "anything short": _is_short,
    "no crash": lambda case: _is_error(case) or _is_whole(case),
}
"""What is expected, by how it begins; the first that fits counts."""


def _written(case: Case) -> list[Path]:
    return [Path(path) for path in case.record.get("outputs", ())]


def _is_whole(case: Case) -> bool:
    """All formats written, each readable by others, times in order and within the file."""
    paths = {path.suffix[1:]: path for path in _written(case)}
    if set(paths) != set(FORMATS):
        return False
    for path in paths.values():
        path.read_bytes().decode("utf-8")
    document = json.loads(paths["json"].read_text(encoding="utf-8"))
    Draft202012Validator(SCHEMA).validate(document)
    pysubs2.load(str(paths["srt"]), format_="srt")
    webvtt.read(paths["vtt"])
    pysubs2.load(str(paths["ass"]), format_="ass")
    times = [time for segment in document["segments"] for time in (segment["start"], segment["end"])]
    return sorted(times) == times and all(0 <= time <= document["duration"] for time in times)


def main() -> None:
    arguments = _arguments()
    lines = (arguments.folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    items = [json.loads(line) for line in lines]
    with tempfile.TemporaryDirectory() as folder:
        records, told = _run(arguments.folder, items, folder, arguments.options)
        cases = [Case(item, records[item["file"]], Path(folder)) for item in items]
        verdicts = [_verdict(case) for case in cases]
    print("| file | expected | what happened | |\n|---|---|---|---|")
    for case, good in zip(cases, verdicts, strict=True):
        cells = (case.item["file"], case.item["expect"], _happened(case), "ok" if good else "**NOT SO**")
        print("|", " | ".join(_cell(cell) for cell in cells), "|")
    print(f"\n{sum(verdicts)} of {len(verdicts)} files do what is expected.")
    if "Traceback" in told or not all(verdicts):
        print(told, file=sys.stderr)
        sys.exit(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("options", nargs="*", help="of as2d transcribe, after --")
    return parser.parse_args()


def _run(
    folder: Path, items: list[dict[str, Any]], outputs: str, options: list[str]
) -> tuple[dict[str, dict[str, Any]], str]:
    """Return what a run says of each file, and all that it told on stderr."""
    files = [str((folder / item["file"]).absolute()) for item in items]
    command = [str(AS2D), "transcribe", "--json", "-f", "all", "-o", outputs, *options, "--", *files]
    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False
    )
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    return {Path(record["file"]).name: record for record in found if "file" in record}, ended.stderr


def _verdict(case: Case) -> bool:
    return next(judge for begin, judge in JUDGES.items() if case.item["expect"].startswith(begin))(case)


def _happened(case: Case) -> str:
    if "error" in case.record:
        name, _, reason = case.record["error"].rpartition(f"{case.item['file']}: ")
        return f"error: {reason or name}"
    said = f"“{_shortened(case.text)}”" if case.text else "empty"
    rate = f" ({case.error_rate:.0%} of the words wrong)" if case.text and case.reference else ""
    return said + rate + "".join(f"; warning: {warning}" for warning in case.record["warnings"])


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _cell(text: str) -> str:
    return _shortened(text).replace("|", "\\|") if text.count("x") > SHOWN else text.replace("|", "\\|")


if __name__ == "__main__":
    main()
