"""What is promised of files from outside, and the tests that hold it, as a Markdown table.

    pip install -e ".[test]"
    python tools/fuzz/promises.py

Runs the tests in one go. The exit code is 1 if one fails, or if a promise has none.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).parents[2] / "tests"
PROMISES = {
    "no path escape or link from a package, an archive or a hub's list of files": (
        r"test_security .*(unpacked|archive|member)|test_registry .*(leave|not_plain)|_broken_manifest"
    ),
    "digests are checked before anything reads a file, and are there for all that is packaged": (
        r"digest|damaged_content"
    ),
    "nothing is unpickled, evaluated or run by a shell; no code of a checkpoint": (
        r"in_the_package|look_at_the_package|code_of_its_own|can_hold_code"
    ),
    "no network but what was asked for, no telemetry": r"test_no_telemetry|network|offline",
    "transcripts, names and messages are never markup or control sequences": r"system/test_printable",
    "a stranger's models.toml runs nothing and reads nothing outside its folder": (
        r"strangers|users_own_registry|folder_that_cannot|stay_where_they_are"
    ),
    "an export tells the engine no other files, no other sizes": (
        r"elsewhere_nor_sizes|engine_is_told|width_that_cannot|cannot_have_dimensions"
    ),
    "a tokenizer changes no text before it encodes it, pads nothing, cuts nothing": (
        r"before_it_is_encoded|pad_nor_cut|more_than_a_vocabulary|ids_that_cannot|stands_for_no_bytes"
    ),
    "what a header claims costs no memory": (
        r"hostile_(safetensors|ctranslate2)|claims_that|computed_wrongly|no_mutation"
    ),
    "hostile media end as audio or one error, soon": r"claims_much|test_damaged_audio",
}
FILES = [
    "project/test_security",
    "system/test_printable",
    "project/test_no_telemetry",
    "models/test_fetch",
    "models/test_registry",
    "models/test_weights",
    "audio/test_damaged_audio",
    "whisper/test_checkpoint",
    "whisper/test_tokenizer",
    "mnn_llm/audio/test_models",
    "mnn_llm/gguf/test_file",
    "mnn_llm/gguf/test_model",
    "mnn_llm/checkpoints/test_torch_export",
]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}"]
        subprocess.run([*command, *(TESTS / f"{name}.py" for name in FILES)], check=False, stdout=sys.stderr)
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    print("| promise | tests | failed |\n|---|---|---|")
    bad = False
    for promise, pattern in PROMISES.items():
        held = [case for case in cases if re.search(pattern, f"{case.get('classname')} {case.get('name')}")]
        failed = sum(case.find("failure") is not None or case.find("error") is not None for case in held)
        bad = bad or failed > 0 or not held
        print(f"| {promise} | {len(held)} | {failed} |")
    sys.exit(bad)


if __name__ == "__main__":
    main()
