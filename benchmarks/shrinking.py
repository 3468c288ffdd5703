"""Shrunk-model speed-up against the FLOP ratio: dense and shrunk model timed in turns, batch 32, length 128.

    python benchmarks/shrinking.py [--models minilm,bert-base] [--threads N] [--rounds N] [--cpu-time]

Heads and neurons go at random over all layers, the same share of both, until the FLOPs have fallen by the
wanted ratio. Goal: speed-up at least 0.93 of the ratio. Rounds that other processes disturb are run again; on a
machine that stays busy, `--threads 1 --cpu-time` leaves out the time that they take.
"""

import argparse
from time import perf_counter, thread_time

import torch
from transformers import AutoModelForSequenceClassification, BertConfig, PreTrainedModel

from tombola.masks import Mask, Scores, Units, draw
from tombola.models.finding import find_model
from tombola.shrink import RandomTokens, count_flops, shrink
from tombola.shrink.measuring import forward_pass
from tombola.shrink.timing import ROUNDS, Stopwatch, time_in_turns

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
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--seconds", type=float, default=300, help="most time for a model and its tickets")
    options.add_argument("--cpu-time", action="store_true", help="only with one thread")
    chosen = options.parse_args()
    if chosen.cpu_time and chosen.threads != 1:
        options.error("--cpu-time needs --threads 1: the time of other threads is not in it")
    watch = Stopwatch(thread_time if chosen.cpu_time else perf_counter)
    torch.set_num_threads(chosen.threads)
    print(f"batch {BATCH}, length {LENGTH}, {chosen.threads} threads, {chosen.rounds} rounds in turns")
    print("model      dense ms  shrunk ms  FLOP ratio  speed-up (95 %)      speed-up / FLOP ratio")
    for name in chosen.models.split(","):
        dense = load(name).eval()
        shrunk = [shrunk_by(dense, ratio).eval() for ratio in RATIOS]
        runs = [forward_pass(model) for model in (dense, *shrunk)]
        batches = RandomTokens(LENGTH).batches(dense, BATCH, 1)
        with torch.inference_mode():
            timed = time_in_turns(runs, batches, rounds=chosen.rounds, seconds=chosen.seconds, watch=watch)
        for index, model in enumerate(shrunk, start=1):
            ratio = count_flops(dense, 1, LENGTH) / count_flops(model, 1, LENGTH)
            found = timed.speedup(index)
            print(
                f"{name:<10} {timed.latency(0) * 1e3:>8.0f}  {timed.latency(index) * 1e3:>9.0f}  {ratio:>10.2f}"
                f"  {found.ratio:>5.2f} ({found.low:.2f} to {found.high:.2f})  {found.ratio / ratio:>20.3f}"
                f"  {found.busy or ''}",
                flush=True,
            )


if __name__ == "__main__":
    main()
