"""What selective updates cost: steps of MiniLM with ROSE's selections against plain ones of AdamW.

    python benchmarks/rose.py [--rounds 6] [--threads 2] [--cpu]

In each round every way takes four steps, and the ratios are medians over the rounds, so that what else the
machine does falls on all; `--cpu` counts processor time, for a machine that is busy. Memory is the highest
resident memory of a process of its own that takes two steps, against one that takes plain steps with the
doubled batch. Goals: a step of second at most 1.03 plain ones, of first 3.1, of ensemble 3.15, of first renewed
every 4 steps 2.4; the optimizer alone at most 1.3 times torch's foreach AdamW; memory at most 1.15 times plain.
"""

import argparse
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from rich.console import Console
from rich.table import Table
from torch.optim import AdamW
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from tombola.foundations.quiet import quiet
from tombola.models.finding import find_model
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.training import TrainSettings
from tombola.training.optimizers import optimizer_of
from tombola.training.selective import Selection
from tombola.training.selective.building import selective

BATCH, LENGTH, STEPS, UPPER = 32, 32, 4, 60
SELECTIONS = {
    "plain": None,
    "second": Selection(kind="second", upper=UPPER),
    "first": Selection(kind="first", upper=UPPER),
    "ensemble": Selection(kind="ensemble", upper=UPPER),
    "first every 4": Selection(kind="first", upper=UPPER, every=4),
}
GOALS = {"second": 1.03, "first": 3.1, "ensemble": 3.15, "first every 4": 2.4}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=6)
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    options.add_argument("--cpu", action="store_true")
    given = options.parse_args()
    clock = time.process_time if given.cpu else time.perf_counter
    torch.set_num_threads(given.threads)
    console = Console()
    memory = {name: peak(name, given.threads) for name in ("plain", "first", "ensemble")}
    table = Table("peak memory", "MB", "ratio", "goal")
    for name, size in memory.items():
        table.add_row(name, f"{size / 1e6:.0f}", f"{size / memory['plain']:.3f}", "1.15")
    console.print(table)
    model = load()
    alone = measure(optimizer_steps(model), given.rounds, clock)
    console.print(_table("optimizer alone", alone, "torch foreach", dict.fromkeys(alone, 1.3)))
    steps = {name: stepping(model, selection) for name, selection in SELECTIONS.items()}
    model.zero_grad()
    console.print(_table("whole step", measure(steps, given.rounds, clock), "plain", GOALS))


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


def stepping(model: PreTrainedModel, selection: Selection | None, size: int = BATCH) -> Callable[[], None]:
    """One whole step: forward, backward, clipping, update."""
    settings = TrainSettings(select=selection)
    objective, (kind, arguments) = CrossEntropy(), optimizer_of(settings)
    if selection is not None:
        (kind, arguments), objective = selective(settings, model, objective, seed=0)
    optimizer, batch = kind(model.parameters(), **arguments), batch_of(size)

    def step() -> None:
        objective.step(model, batch, lambda loss: loss.backward())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


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


def measure(
    ways: dict[str, Callable[[], None]], rounds: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Seconds per step of each way in each round, after one that does not count."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, step in ways.items() if turn % 2 else reversed(ways.items()):
            start = clock()
            for _ in range(STEPS):
                step()
            times[name].append((clock() - start) / STEPS)
    return {name: seconds[1:] for name, seconds in times.items()}


def peak(name: str, threads: int) -> int:
    """Bytes at the highest that a process which takes two steps has held; plain with the doubled batch."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (name, threads))


def _peak(name: str, threads: int) -> int:
    torch.set_num_threads(threads)
    step = stepping(load(), SELECTIONS[name], 2 * BATCH if name == "plain" else BATCH)
    step(), step()
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _table(title: str, times: dict[str, list[float]], base: str, goals: dict[str, float]) -> Table:
    table = Table(title, "median ms", "ratio", "goal")
    for name, seconds in times.items():
        ratio = statistics.median(one / other for one, other in zip(seconds, times[base], strict=True))
        goal = f"{goals[name]:g}" if name in goals and name != base else ""
        table.add_row(name, f"{1e3 * statistics.median(seconds):.1f}", f"{ratio:.3f}", goal)
    return table


if __name__ == "__main__":
    main()
