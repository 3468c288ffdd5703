"""What importance costs: a pass over training data against plain forward and backward passes with frozen weights.

    python benchmarks/importance.py [--units head+ffn] [--pairs 12] [--threads 1]

The plain pass takes the gradient of the loss with respect to the embedded tokens, as a saliency map would, over the
same batches of film reviews. Passes alternate, times are processor time, and the ratio is the median over
neighbouring pairs, so that what else the machine does falls on both. The goal is a ratio of at most 1.15.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from transformers import PreTrainedModel

from tombola.masks import Units
from tombola.models.finding import find_model
from tombola.models.loading import load_model, load_tokenizer
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.search import Evidence
from tombola.search.importance import Importance, importance
from tombola.tasks import Collate, Task, encode
from tombola.training.batches import ordered_batches

BATCH, BATCHES = 32, 6

Batch = dict[str, Any]


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--units", nargs="+", default=["head+ffn", "head+neuron"])
    options.add_argument("--pairs", type=int, default=12)
    options.add_argument("--threads", type=int, default=1)
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    folder, task = find_model("minilm").folder, Task.named("reviews")
    model, tokenizer = load_model(folder, task, seed=0), load_tokenizer(folder)
    data = encode(task.load("train"), tokenizer, 128)
    batches = list(ordered_batches(data, Collate(tokenizer), size=BATCH, seed=0, count=BATCHES))
    tokens = sum(int(batch["attention_mask"].sum()) for batch in batches)
    table = Table(title=f"MiniLM, {BATCHES} batches of {BATCH} reviews, {tokens:,} tokens")
    for column in ("pass", "plain s", "importance s", "ratio", "quartiles"):
        table.add_column(column, justify="right")
    for units in given.units:
        plain, scored = measure(model, units, batches, given.pairs)
        ratios = sorted(two / one for one, two in zip(plain, scored, strict=True))
        low, _, high = statistics.quantiles(ratios, n=4)
        table.add_row(
            units,
            f"{statistics.median(plain):.2f}",
            f"{statistics.median(scored):.2f}",
            f"{statistics.median(ratios):.3f}",
            f"{low:.3f} to {high:.3f}",
        )
    Console().print(table)


def plain_pass(model: PreTrainedModel, batches: list[Batch]) -> None:
    """The gradient of each batch's loss at the embedded tokens."""
    for batch in batches:
        embedded = model.get_input_embeddings()(batch["input_ids"]).detach().requires_grad_()
        loss = CrossEntropy().loss(model, {**_without_ids(batch), "inputs_embeds": embedded})
        torch.autograd.grad(loss, embedded)


def measure(
    model: PreTrainedModel, name: str, batches: list[Batch], pairs: int
) -> tuple[list[float], list[float]]:
    """Seconds of alternating passes, plain and scored; which comes first alternates too."""
    units, settings = Units.of(model, name), Importance(units=name)

    def stored(count: int | None) -> Iterator[Batch]:
        return iter(batches)

    def timed(scored: bool) -> float:
        start = time.process_time()
        if scored:
            importance(settings, model, units, Evidence(0, stored))
        else:
            plain_pass(model, batches)
        return time.process_time() - start

    model.eval().requires_grad_(False)
    timed(scored=False), timed(scored=True)
    times: dict[bool, list[float]] = {False: [], True: []}
    for pair in range(pairs):
        for scored in (False, True) if pair % 2 else (True, False):
            times[scored].append(timed(scored))
    return times[False], times[True]


def _without_ids(batch: Batch) -> Batch:
    return {name: value for name, value in batch.items() if name != "input_ids"}


if __name__ == "__main__":
    main()
