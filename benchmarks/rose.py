"""What selective updates cost: steps of MiniLM with ROSE's selections against plain ones of AdamW.

    python benchmarks/rose.py [--threads 2]

Memory is the highest resident memory of a process of its own that takes two steps, against one that takes plain steps
with the doubled batch.
"""

import argparse
import multiprocessing
import resource
from collections.abc import Callable, Iterator
from functools import partial

import torch
from measuring import Figure, in_turns, run
from torch.optim import AdamW
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from tombola.foundations.quiet import quiet
from tombola.models.finding import find_model
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.training import TrainSettings
from tombola.training.optimizers import optimizer_of
from tombola.training.selective import Selection
from tombola.training.selective.building import selective

BATCH, LENGTH, UPPER = 32, 32, 60
SELECTIONS = {
    "plain": None,
    "second": Selection(kind="second", upper=UPPER),
    "first": Selection(kind="first", upper=UPPER),
    "ensemble": Selection(kind="ensemble", upper=UPPER),
    "first every 4": Selection(kind="first", upper=UPPER, every=4),
}
GOALS = {"second": "≤ 1.03", "first": "≤ 3.1", "ensemble": "≤ 3.15", "first every 4": "≤ 2.4"}


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    rounds = 3 if given.quick else 9
    model = load()
    turns = in_turns(optimizer_steps(model), rounds)
    for name in ("second", "first", "ensemble"):
        yield turns.ratio(f"the optimizer of {name} ÷ torch's foreach AdamW", name, "torch foreach", "≤ 1.3")
    model.zero_grad()
    for names, steps in ((("second", "first", "ensemble"), 1), (("first every 4",), 4)):
        ways = {name: stepping(model, SELECTIONS[name], steps) for name in ("plain", *names)}
        turns = in_turns(ways, rounds)
        for name in names:
            yield turns.ratio(f"a step of {name} ÷ a plain step of AdamW", name, "plain", GOALS[name])
    memory = {name: peak(name, given.threads) for name in ("plain", "first", "ensemble")}
    for name in ("first", "ensemble"):
        yield Figure(
            f"peak memory of {name} ÷ plain, doubled batch", memory[name] / memory["plain"], "≤ 1.15"
        )


def load() -> PreTrainedModel:
    torch.manual_seed(0)
    with quiet():
        model = AutoModelForSequenceClassification.from_pretrained(find_model("minilm").folder, num_labels=2)
    return model.train()


def batch_of(size: int) -> dict[str, torch.Tensor]:
    return {
        "input_ids": torch.randint(1000, 20000, (size, LENGTH)),
        "attention_mask": torch.ones(size, LENGTH, dtype=torch.long),
        "labels": torch.randint(0, 2, (size,)),
    }


def stepping(
    model: PreTrainedModel, selection: Selection | None, count: int, size: int = BATCH
) -> Callable[[], None]:
    """So many whole steps: forward, backward, clipping, update."""
    settings = TrainSettings(select=selection)
    objective, (kind, arguments) = CrossEntropy(), optimizer_of(settings)
    if selection is not None:
        (kind, arguments), objective = selective(settings, model, objective, seed=0)
    optimizer, batch = kind(model.parameters(), **arguments), batch_of(size)

    def steps() -> None:
        for _ in range(count):
            objective.step(model, batch, lambda loss: loss.backward())
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

    return steps


def optimizer_steps(model: PreTrainedModel) -> dict[str, Callable[[], None]]:
    """The update alone, with gradients and the choice of first already there."""
    for parameter in model.parameters():
        parameter.grad = 1e-3 * torch.randn_like(parameter)
    steps: dict[str, Callable[[], None]] = {
        "torch foreach": AdamW(model.parameters(), lr=1e-5, foreach=True).step,
        "torch fused": AdamW(model.parameters(), lr=1e-5, fused=True).step,
    }
    for name in ("second", "first", "ensemble"):
        selection = SELECTIONS[name]
        (kind, arguments), _ = selective(TrainSettings(select=selection), model, CrossEntropy(), seed=0)
        optimizer = kind(model.parameters(), **arguments)
        steps[name] = optimizer.step
        if optimizer.risk is not None:
            weights = optimizer.candidates.weights
            chosen = torch.arange(len(weights)).lt(UPPER * len(weights) / 100).unbind()
            optimizer.risk.take = partial(list, chosen)  # type: ignore[method-assign]
    return steps


def peak(name: str, threads: int) -> int:
    """Bytes at the highest that a process which takes two steps has held; plain with the doubled batch."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (name, threads))


def _peak(name: str, threads: int) -> int:
    torch.set_num_threads(threads)
    stepping(load(), SELECTIONS[name], 2, 2 * BATCH if name == "plain" else BATCH)()
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    run(__doc__, figures)
