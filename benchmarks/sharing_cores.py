"""How well two runs at once share the cores: their processor time together against that of one run.

    python benchmarks/sharing_cores.py

Each run takes training steps of MiniLM on all cores, in a process that is set up as the command line sets it up. Runs
whose threads spin while they wait for each other would take several times the processor time of one.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator

from measuring import Figure, run

from tombola.evaluation.intervals import median_interval
from tombola.foundations.hardware.machine import cores

RUN = """
import json, sys, time
from tombola.cli.options import start
start()
import torch
from transformers import AutoModelForSequenceClassification
from tombola.foundations.quiet import quiet
from tombola.models.finding import find_model
from tombola.training import TrainSettings
from tombola.training.optimizers import optimizer_of

threads, steps = map(int, sys.argv[1:])
torch.set_num_threads(threads)
with quiet():
    model = AutoModelForSequenceClassification.from_pretrained(find_model("minilm").folder, num_labels=2).train()
kind, arguments = optimizer_of(TrainSettings())
optimizer = kind(model.parameters(), **arguments)
ids = torch.randint(1000, 20000, (32, 32))

def step():
    model(input_ids=ids, labels=torch.zeros(32, dtype=torch.long)).loss.backward()
    optimizer.step()
    optimizer.zero_grad()

step()
print("ready", flush=True)
sys.stdin.readline()
wall, processor = time.perf_counter(), time.process_time()
for _ in range(steps):
    step()
print(json.dumps([time.process_time() - processor, time.perf_counter() - wall]), flush=True)
"""
GOAL = "≤ 2.3"


def runs_at_once(count: int, threads: int, steps: int) -> tuple[float, float]:
    """The processor time of so many runs together, and how long the slowest of them took."""
    command = [sys.executable, "-c", RUN, str(threads), str(steps)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    found = [json.loads(process.communicate()[0]) for process in started]
    return sum(processor for processor, _ in found), max(wall for _, wall in found)


def two_against_one(threads: int, steps: int, rounds: int) -> Figure:
    """Two runs at once against one, over some rounds."""
    pairs = [[runs_at_once(count, threads, steps) for count in (1, 2)] for _ in range(rounds)]
    middle, low, high = median_interval([two[0] / one[0] for one, two in pairs])
    wall = median_interval([two[1] / one[1] for one, two in pairs]).median
    return Figure(f"two runs of {threads} threads at once ÷ one", middle, GOAL, "", low, high, wall)


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    yield two_against_one(max(2, cores()), 5 if given.quick else 20, 1 if given.quick else 6)


if __name__ == "__main__":
    run(__doc__, figures)
