"""Run the studies behind docs/evidence, or say what is left of them: `python tools/run_evidence.py [--dry-run]`.

The commands are the lines of docs/evidence/commands.txt. All of them share a store, so that a run that was stopped goes
on where it was, and one that is finished takes seconds.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
COMMANDS = ROOT / "docs" / "evidence" / "commands.txt"
OUTPUT = ROOT / "runs" / "evidence"


def commands(text: str) -> list[list[str]]:
    """The words of each command, without comments."""
    return [words for line in text.splitlines() if (words := shlex.split(line, comments=True))]


def name_of(words: list[str]) -> str:
    """A folder's name: that of the run where the command gives one, else the recipe's with its folder."""
    given = [word.removeprefix("name=") for word in words if word.startswith("name=")]
    recipe = Path(words[1])
    return given[0] if given else f"{recipe.parent.name}-{recipe.stem}"


def plan_of(events: str) -> dict[str, Any]:
    """The plan that a dry run with --json ends with."""
    return dict(json.loads(events.splitlines()[-1])["plan"])


def total(plans: list[dict[str, Any]]) -> str:
    """One sentence about what is left of all studies."""
    steps = sum(plan["training_steps"] for plan in plans)
    hours = sum(plan["seconds"] or 0.0 for plan in plans) / 3600
    return (
        f"all studies: {steps:,} training steps left, about {hours:.1f} h on one worker, not counting attacks"
    )


def main() -> None:
    """Run the commands in order; go on after one that fails, and fail at the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dry-run", action="store_true", help="say how long each study will take, and stop")
    parser.add_argument("--store", type=Path, default=OUTPUT / "store", help="where finished stages are kept")
    asked = parser.parse_args()
    if not os.environ.get("TOMBOLA_DATA"):
        parser.error("set TOMBOLA_DATA to the folder of the data sets")
    failed, plans = [], []
    for words in commands(COMMANDS.read_text(encoding="utf-8")):
        command = [sys.executable, "-m", "tombola", *words, "--store", str(asked.store)]
        command += ["--dry-run", "--json"] if asked.dry_run else ["--output", str(OUTPUT / name_of(words))]
        print(f"tombola {shlex.join(words)}", flush=True)
        done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE if asked.dry_run else None)
        if done.returncode:
            failed.append(words)
        elif asked.dry_run:
            plans.append(plan_of(done.stdout))
    if asked.dry_run:
        print(total(plans))
    if failed:
        sys.exit("failed:\n" + "\n".join(f"tombola {shlex.join(words)}" for words in failed))


if __name__ == "__main__":
    main()
