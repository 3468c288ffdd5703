"""What importance costs: a pass over training data against plain forward and backward passes with frozen weights.

    python benchmarks/importance.py [--units head+ffn] [--threads 1]

The plain pass takes the gradient of the loss with respect to the embedded tokens, as a saliency map would, over the
same batches of film reviews.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import torch
from measuring import Figure, in_turns, run
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


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--units", nargs="+", default=["head+ffn", "head+neuron"])


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    folder, task = find_model("minilm").folder, Task.named("reviews")
    model, tokenizer = load_model(folder, task, seed=0), load_tokenizer(folder)
    data = encode(task.load("train"), tokenizer, 128)
    batches = list(ordered_batches(data, Collate(tokenizer), size=BATCH, seed=0, count=BATCHES))
    model.eval().requires_grad_(False)
    ways = {"plain": lambda: plain_pass(model, batches)}
    ways |= {name: scoring(model, name, batches) for name in given.units}
    turns = in_turns(ways, rounds=3 if given.quick else 12)
    for name in given.units:
        yield turns.ratio(
            f"importance of {name} ÷ a plain forward and backward pass", name, "plain", "≤ 1.15"
        )


def plain_pass(model: PreTrainedModel, batches: list[Batch]) -> None:
    """The gradient of each batch's loss at the embedded tokens."""
    for batch in batches:
        embedded = model.get_input_embeddings()(batch["input_ids"]).detach().requires_grad_()
        loss = CrossEntropy().loss(model, {**_without_ids(batch), "inputs_embeds": embedded})
        torch.autograd.grad(loss, embedded)


def scoring(model: PreTrainedModel, name: str, batches: list[Batch]) -> Callable[[], object]:
    """Importance of the units of this name over the batches."""
    units, settings = Units.of(model, name), Importance(units=name)
    return lambda: importance(settings, model, units, Evidence(0, lambda count: iter(batches)))


def _without_ids(batch: Batch) -> Batch:
    return {name: value for name, value in batch.items() if name != "input_ids"}


if __name__ == "__main__":
    run(__doc__, figures, options)
