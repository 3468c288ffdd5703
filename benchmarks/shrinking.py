"""Shrunk-model speed-up against the FLOP ratio: dense and shrunk model timed in turns, batch 32, length 128.

    python benchmarks/shrinking.py [--models minilm,bert-base] [--threads N] [--rounds N] [--cpu-time]

Heads and neurons go at random over all layers, the same share of both, until the FLOPs have fallen by the
wanted ratio. Goal: speed-up at least 0.93 of the ratio. On a machine that others use too, `--threads 1
--cpu-time` leaves out the time that they take, and the fastest rounds are those they disturbed least.
"""

import argparse
from statistics import median
from time import perf_counter, thread_time

import torch
from transformers import AutoModelForSequenceClassification, BertConfig, PreTrainedModel

from tombola.masks import Mask, Scores, Units, draw
from tombola.models.finding import find_model
from tombola.shrink import count_flops, shrink
from tombola.shrink.measuring import time_in_turns

RATIOS = (1.3, 2.0, 4.0)
BATCH, LENGTH = 32, 128


def load(name: str) -> PreTrainedModel:
    if name == "bert-base":
        return AutoModelForSequenceClassification.from_config(BertConfig())
    return AutoModelForSequenceClassification.from_pretrained(find_model(name).folder)


def random_mask(units: Units, sparsity: float) -> Mask:
    generator = torch.Generator().manual_seed(0)
    scores = {group.name: torch.rand(group.shape, generator=generator) for group in units.groups}
    return draw(Scores(units, scores), sparsity)


def shrunk_by(model: PreTrainedModel, ratio: float) -> PreTrainedModel:
    heads = Units.of(model, "head")
    neurons = Units.of(model, "neuron", base=heads.base)
    sparsity = 1 - 1 / ratio
    return shrink(model, random_mask(heads, sparsity).join(random_mask(neurons, sparsity)))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--models", default="minilm,bert-base")
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--cpu-time", action="store_true", help="only with one thread")
    chosen = options.parse_args()
    if chosen.cpu_time and chosen.threads != 1:
        options.error("--cpu-time needs --threads 1: the time of other threads is not in it")
    clock = thread_time if chosen.cpu_time else perf_counter
    torch.set_num_threads(chosen.threads)
    print(f"batch {BATCH}, length {LENGTH}, {chosen.threads} threads, {chosen.rounds} rounds in turns")
    print(
        "model      dense ms  shrunk ms  FLOP ratio  speed-up / FLOP ratio: of medians, of the fastest rounds"
    )
    for name in chosen.models.split(","):
        dense = load(name).eval()
        shrunk = [shrunk_by(dense, ratio).eval() for ratio in RATIOS]
        before, *after = time_in_turns([dense, *shrunk], BATCH, LENGTH, chosen.rounds, clock)
        for model, seconds in zip(shrunk, after, strict=True):
            ratio = count_flops(dense, 1, LENGTH) / count_flops(model, 1, LENGTH)
            print(
                f"{name:<10} {median(before) * 1e3:>8.0f}  {median(seconds) * 1e3:>9.0f}  {ratio:>10.2f}"
                f"  {median(before) / median(seconds) / ratio:>33.3f}  {min(before) / min(seconds) / ratio:>21.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
