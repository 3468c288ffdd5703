"""All benchmarks in one go: one table, and one JSON file for this machine.

    make bench
    python benchmarks/bench.py [NAME ...] [--quick] [--threads 1] [--output FILE] [--wait SECONDS]

Each benchmark runs in a process of its own, one after another. Figures of benchmarks that are not run again stay in
the file. `--quick` takes few rounds and writes no file unless told where. A benchmark that finds the machine busy says
so, in the table and in the file; `--wait` first gives others that long to finish. Afterwards
`tools/build_performance.py` renews the page docs/evidence/performance.md.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

import torch
from measuring import IDLE, Figure, busy_remark, others_at_work, table_of
from rich.console import Console

from tombola.foundations.hardware.machine import describe_machine
from tombola.foundations.hardware.threads import PATIENT

HERE = Path(__file__).parent
BENCHMARKS = (
    *("startup", "drawing", "imp", "importance", "fixed_mask", "gated_search", "rose", "calibration"),
    *("evaluation", "attacks", "shrinking", "onnx_attention", "sharing_cores", "studies", "whole_llm"),
)
"""Against Torch-Pruning, accuracy is compared: that script needs a fine-tuned model, and is not one of these."""
MACHINES = HERE.parent / "docs" / "evidence" / "performance"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; else all")
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that all run, not to quote")
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch (default: 1)")
    parser.add_argument("--output", type=Path, help="the JSON file of this machine")
    parser.add_argument(
        "--wait", type=float, default=0, help="seconds to wait for an idle machine (default: 0)"
    )
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(BENCHMARKS)):
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    machine = machine_of(given.threads)
    output = given.output or (None if given.quick else MACHINES / f"{file_name(machine)}.json")
    kept = json.loads(output.read_text(encoding="utf-8")) if output and output.exists() else {}
    benchmarks: dict[str, Any] = kept.get("benchmarks", {})
    console, failed, rows = Console(), [], []
    console.print(
        f"{machine['processor']}, {machine['cores']} cores, {machine['instructions']}", highlight=False
    )
    for name in given.names or BENCHMARKS:
        wait_for_idle(given.wait)
        console.print(f"{name} …", highlight=False)
        found = measured(name, given.threads, given.quick)
        if found is None:
            failed.append(name)
            continue
        benchmarks[name] = {"date": date.today().isoformat(), **found}
        rows += [Figure(**figure) for figure in found["figures"]]
        if remark := busy_remark(found["others"]):
            console.print(f"{name}: {remark}", highlight=False)
        if output:
            output.parent.mkdir(parents=True, exist_ok=True)
            ordered = {one: benchmarks[one] for one in BENCHMARKS if one in benchmarks}
            text = json.dumps({"machine": machine, "benchmarks": ordered}, indent=1, ensure_ascii=False)
            output.write_text(text + "\n", encoding="utf-8")
    table = table_of(f"{machine['processor']}, {given.threads} thread(s)", rows)
    table.caption = "processor time; wall time beside it. ✗ misses its goal, * had to wait for a processor"
    console.print(table)
    if output:
        console.print(f"figures  {output}", soft_wrap=True, highlight=False)
    if failed:
        sys.exit(f"these benchmarks failed: {', '.join(failed)}")


def measured(name: str, threads: int, quick: bool) -> dict[str, Any] | None:
    """What a benchmark found in a process of its own; None if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        command = [sys.executable, str(HERE / f"{name}.py"), "--json", str(file), "--threads", str(threads)]
        environment = {**os.environ, **PATIENT, "OMP_NUM_THREADS": str(threads)}
        done = subprocess.run(
            [*command, *(["--quick"] if quick else [])], env=environment, stdout=subprocess.DEVNULL
        )
        return None if done.returncode else json.loads(file.read_text(encoding="utf-8"))


def wait_for_idle(seconds: float) -> None:
    """Return when nobody else is at work, or when the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and others_at_work(5.0) >= IDLE:
        time.sleep(10)


def machine_of(threads: int) -> dict[str, Any]:
    """The facts about this machine that its figures depend on."""
    return {
        **describe_machine(),
        "os": platform.system(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "onednn": os.environ.get("ONEDNN_MAX_CPU_ISA", "all it finds"),
        "threads": threads,
        "torch": torch.__version__,
        "python": sys.version.split()[0],
    }


def file_name(machine: dict[str, Any]) -> str:
    """A name for the machine's file: processor, cores, the instructions that PyTorch uses, threads."""
    threads = "" if machine["threads"] == 1 else f" {machine['threads']} threads"
    words = f"{machine['processor']} {machine['cores']} cores {machine['instructions']}{threads}"
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


if __name__ == "__main__":
    main()
