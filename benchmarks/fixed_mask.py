"""What a fixed mask costs: a step and a forward pass of MiniLM under a 70 % weight mask against plain ones.

    python benchmarks/fixed_mask.py [--threads 2]

Both forward passes are of copies in memory, so that neither model lies there as it was loaded.
"""

import argparse
import copy
from collections.abc import Callable, Iterator

import torch
from measuring import Figure, in_turns, run
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from tombola.foundations.quiet import quiet
from tombola.masks import Mask, Units
from tombola.models.finding import find_model
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.shrink import RandomTokens
from tombola.shrink.measuring import forward_pass
from tombola.training import KeepMask, TrainSettings
from tombola.training.optimizers import optimizer_of

BATCH, LENGTH, SPARSITY, STEPS = 32, 32, 0.7, 2


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    torch.manual_seed(0)
    with quiet():
        model = AutoModelForSequenceClassification.from_pretrained(find_model("minilm").folder, num_labels=2)
    mask = random_mask(model)
    ways = {"plain": step(model), "mask": step(model, KeepMask(mask))}
    turns = in_turns(ways, rounds=6 if given.quick else 20)
    yield turns.ratio(
        f"a training step under a mask ÷ a plain step, {BATCH} × {LENGTH}", "mask", "plain", "≤ 1.03"
    )
    for size, rounds in ((1, 150), (BATCH, 60)):
        turns = in_turns(passes(model, mask, size), rounds=rounds // 10 if given.quick else rounds)
        yield turns.ratio(
            f"a forward pass of a ticket ÷ of the dense model, batch {size}", "ticket", "dense", "≤ 1.01"
        )


def passes(model: PreTrainedModel, mask: Mask, size: int) -> dict[str, Callable[[], object]]:
    """Forward passes of the dense model and of the ticket, both copies."""
    dense, ticket = copy.deepcopy(model).eval(), copy.deepcopy(model).eval()
    mask.apply(ticket)
    (batch,) = RandomTokens(LENGTH).batches(dense, size, 1)
    return {"dense": repeated(forward_pass(dense), batch), "ticket": repeated(forward_pass(ticket), batch)}


def repeated(forward: Callable[[object], object], batch: object, times: int = 3) -> Callable[[], None]:
    def call() -> None:
        with torch.inference_mode():
            for _ in range(times):
                forward(batch)

    return call


def random_mask(model: PreTrainedModel) -> Mask:
    units = Units.of(model, "weight")
    return Mask.from_bools(units, {group.name: torch.rand(group.shape) >= SPARSITY for group in units.groups})


def step(model: PreTrainedModel, keep: KeepMask | None = None) -> Callable[[], None]:
    """Some steps of training a copy of the model, plain or under a mask."""
    own = copy.deepcopy(model).train()
    kind, arguments = optimizer_of(TrainSettings())
    optimizer, objective = kind(own.parameters(), **arguments), CrossEntropy()
    batch = {
        "input_ids": torch.randint(1000, 20000, (BATCH, LENGTH)),
        "attention_mask": torch.ones(BATCH, LENGTH, dtype=torch.long),
        "labels": torch.randint(0, 2, (BATCH,)),
    }
    if keep is not None:
        keep.hold(own)

    def steps() -> None:
        for _ in range(STEPS):
            objective.step(own, batch, lambda loss: loss.backward())
            torch.nn.utils.clip_grad_norm_(own.parameters(), 1.0)
            optimizer.step()
            if keep is not None:
                keep.zero()
            optimizer.zero_grad()

    return steps


if __name__ == "__main__":
    run(__doc__, figures)
