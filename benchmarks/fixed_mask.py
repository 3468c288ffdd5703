"""What a fixed mask costs: a step and a forward pass of MiniLM under a 70 % weight mask against plain ones.

    python benchmarks/fixed_mask.py [--pairs 20] [--threads 2]

Blocks of plain and masked steps alternate, and the ratio is the median over neighbouring pairs, so that
what else the machine does falls on both. Forward passes of the dense model and of the ticket take turns. The goals
are at most 1.03 for a step, 1.01 for a forward pass, at a batch of 1 too.
"""

import argparse
import copy
import statistics
import time

import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from tombola.masks import Mask, Units
from tombola.models.finding import find_model
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.shrink import RandomTokens
from tombola.shrink.measuring import forward_pass
from tombola.shrink.timing import Rounds, time_in_turns
from tombola.training import KeepMask, TrainSettings
from tombola.training.optimizers import optimizer_of

BATCH, LENGTH, SPARSITY, STEPS = 32, 32, 0.7, 3


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pairs", type=int, default=20)
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(find_model("minilm").folder, num_labels=2)
    mask = random_mask(model)
    plain, masked = measure(model, mask, given.pairs)
    ratios = sorted(two / one for one, two in zip(plain, masked, strict=True))
    table = Table(title=f"MiniLM, batch {BATCH} x {LENGTH} tokens, {mask.weight_sparsity:.0%} removed")
    for column in ("step", "median ms", "fastest ms"):
        table.add_column(column, justify="right")
    for name, times in (("plain", plain), ("under the mask", masked)):
        table.add_row(name, f"{1e3 * statistics.median(times):.1f}", f"{1e3 * min(times):.1f}")
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    middle, best = statistics.median(ratios), min(masked) / min(plain)
    table.add_row("ratio", f"{middle:.3f} ({low:.3f} to {high:.3f})", f"{best:.3f}")
    for size in (1, BATCH):
        timed = passes(model, mask, size, rounds=given.pairs * (15 if size == 1 else 3))
        title = f"forward pass of a ticket, batch {size}"
        dense, ticket = ([laps[index].seconds for laps in timed.laps] for index in (0, 1))
        turns = timed.speedup(1)
        table.add_row(title, f"{1e3 * statistics.median(ticket):.1f}", f"{1e3 * min(ticket):.1f}")
        ratio = f"{1 / turns.ratio:.3f} ({1 / turns.high:.3f} to {1 / turns.low:.3f})"
        table.add_row("ratio", ratio, f"{min(ticket) / min(dense):.3f}")
        if turns.busy:
            table.caption = turns.busy
    Console().print(table)


@torch.inference_mode()
def passes(model: PreTrainedModel, mask: Mask, size: int, rounds: int) -> Rounds:
    """Forward passes of the dense model and of the ticket, which take turns; both are copies."""
    dense, ticket = copy.deepcopy(model).eval(), copy.deepcopy(model).eval()
    mask.apply(ticket)
    runs, batches = [forward_pass(dense), forward_pass(ticket)], RandomTokens(LENGTH).batches(dense, size, 1)
    return time_in_turns(runs, batches, rounds=rounds, seconds=120)


def random_mask(model: PreTrainedModel) -> Mask:
    units = Units.of(model, "weight")
    return Mask.from_bools(units, {group.name: torch.rand(group.shape) >= SPARSITY for group in units.groups})


def measure(model: PreTrainedModel, mask: Mask, pairs: int) -> tuple[list[float], list[float]]:
    """Seconds per step of alternating blocks, plain and masked; which comes first alternates too."""
    kind, arguments = optimizer_of(TrainSettings())
    optimizer = kind(model.parameters(), **arguments)
    objective, keep = CrossEntropy(), KeepMask(mask)
    batch = {
        "input_ids": torch.randint(1000, 20000, (BATCH, LENGTH)),
        "attention_mask": torch.ones(BATCH, LENGTH, dtype=torch.long),
        "labels": torch.randint(0, 2, (BATCH,)),
    }

    def block(under_mask: bool) -> float:
        keep.release()
        if under_mask:
            keep.hold(model)
        start = time.perf_counter()
        for _ in range(STEPS):
            objective.step(model, batch, lambda loss: loss.backward())
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            keep.zero()
            optimizer.zero_grad()
        return (time.perf_counter() - start) / STEPS

    model.train()
    block(under_mask=False), block(under_mask=True)
    times: dict[bool, list[float]] = {False: [], True: []}
    for pair in range(pairs):
        for under_mask in (False, True) if pair % 2 else (True, False):
            times[under_mask].append(block(under_mask))
    return times[False], times[True]


if __name__ == "__main__":
    main()
