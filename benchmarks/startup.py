"""How long a person waits before anything happens: importing, helping, and the first signs of life of a run.

    python benchmarks/startup.py [--quick]

The first line is the first that `tombola run` prints; the first step is the first that a training of the embedded
model has finished. Both are timed from the start of the process, whose processor time is what counts; that of its
children is part of it.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from time import perf_counter

import psutil
from measuring import Figure, in_turns, run

from tombola.evaluation.intervals import median_interval

COMMANDS = {
    "python -c pass": (["-c", "pass"], ""),
    "import tombola": (["-c", "import tombola"], "≤ 0.5"),
    "tombola --help": (["-m", "tombola", "--help"], "≤ 1"),
    "import torch": (["-c", "import torch"], ""),
    "import transformers.Trainer": (["-c", "from transformers import Trainer"], ""),
}
RUN = ["-m", "tombola", "run", "bert_tickets/quick", "--json"]


def call(arguments: list[str]) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def signs_of_life() -> dict[str, tuple[float, float]]:
    """Processor and wall time of a run until its first line and until its first step of training."""
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        process = subprocess.Popen(
            [sys.executable, *RUN, "--store", f"{folder}/store", "--output", f"{folder}/output"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        found: dict[str, tuple[float, float]] = {}
        try:
            assert process.stdout is not None
            for line in process.stdout:
                now = (sum(psutil.Process(process.pid).cpu_times()[:4]), perf_counter() - start)
                found.setdefault("line", now)
                if '"progressed"' in line:
                    found["step"] = now
                    return found
        finally:
            process.kill()
            process.communicate()
    raise SystemExit("tombola run ended before its first step of training")


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    rounds = 3 if given.quick else 7
    turns = in_turns({name: call(arguments) for name, (arguments, _) in COMMANDS.items()}, rounds)
    for name, (_, goal) in COMMANDS.items():
        yield turns.time(name, name, goal)
    runs = [signs_of_life() for _ in range(rounds)]
    for name, sign, goal in (
        ("from Enter to the first line of tombola run", "line", "≤ 1.5"),
        ("from Enter to the first step of training", "step", "≤ 8"),
    ):
        middle, low, high = median_interval([found[sign][0] for found in runs])
        wall = median_interval([found[sign][1] for found in runs]).median
        yield Figure(name, middle, goal, "s", low, high, wall, busy=turns.busy)


if __name__ == "__main__":
    run(__doc__, figures)
