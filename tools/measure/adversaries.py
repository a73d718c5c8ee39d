"""What `auto` loses with drafters that are of no use: as2d bench with each of them, beside the target alone.

    python tools/measure/adversaries.py FOLDER... [--windows 24] [--repeats 2]

All but the last say what nobody said: at once, slowly, after three seconds, dying in every window, in a
loop. All look good in a profile, which knows only what they cost.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from as2d_cli.bench.report.summary import Summary, summarise
from as2d_cli.bench.trials import read_results

ADVERSARIES = {
    "wrong": {"words": 120},
    "slow": {"words": 120, "delay_ms": 40},
    "late": {"words": 120, "start_delay_ms": 3000},
    "dying": {"words": 120, "exit_at": 12},
    "looping": {"words": 120, "loop_at": 3},
}


def main() -> None:
    arguments = _arguments()
    print("| drafter | auto chose | windows | slower >3 % | whole batch | windows, least times |")
    print("|---|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        models = Path(folder) / "models.toml"
        models.write_text(_registry(), encoding="utf-8")
        for name in [*ADVERSARIES, "whisper-tiny.en"]:
            plain, auto, chosen = _run(name, models, Path(folder) / f"{name}.jsonl", arguments)
            print(
                f"| {name} | {chosen} | {auto.windows} | {auto.clearly_slower:.1%} | "
                f"{auto.batch_speedup:.3f}x | {auto.window_speedup:.3f}x |",
                flush=True,
            )
            if auto.tokens != plain.tokens:
                sys.exit(f"{name}: not the same text")


def _run(
    name: str, models: Path, results: Path, arguments: argparse.Namespace
) -> tuple[Summary, Summary, str]:
    command = [str(Path(sys.executable).with_name("as2d")), "bench", *map(str, arguments.paths)]
    command += ["--drafter", name, "--modes", "as2d-auto", "--no-oracle", "-o", str(results)]
    command += ["--repeats", str(arguments.repeats), "--limit-windows", str(arguments.windows)]
    ended = subprocess.run(
        command, env=os.environ | {"AS2D_MODELS": str(models)}, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        sys.exit(f"{name}: exit code {ended.returncode}\n{ended.stderr}")
    found = read_results(results)
    plain, auto = summarise(found.trials)
    budget = found.provenance["budget"]
    return plain, auto, f"at most {budget['cap']} drafts" if budget["drafting"] else "none"


def _registry() -> str:
    lines = ["schema = 1"]
    for name, options in ADVERSARIES.items():
        values = ", ".join(f"{key} = {json.dumps(value)}" for key, value in options.items())
        lines += [
            f"[models.{name}]",
            'plugin = "scripted"',
            'role = "drafter"',
            'source = { kind = "none" }',
            f"options = {{ {values} }}",
        ]
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--windows", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
