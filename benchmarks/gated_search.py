"""What learned masks cost: steps of a search beside plain passes, and the reset of a threshold beside kthvalue.

    python benchmarks/gated_search.py [--pairs 10] [--threads 2]

Blocks of both kinds alternate, and a ratio is the median over neighbouring pairs, so that what else the machine
does falls on both. MiniLM, batches of 32 sentences as long as SST-2's; BERT-base's 85,524,480 scores. Goals: a step
of a search with five adversarial passes and weight-level hard-concrete gates takes at most 1.06 of five plain
forward and backward passes; a step of mask training at most 0.95 of a plain training step, be its AdamW torch's
as it comes or the fused one that Tombola takes; a reset of the thresholds at most 0.6 of `torch.kthvalue` in each
of the matrices.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoModelForSequenceClassification, BertConfig, PreTrainedModel

from tombola.gates import L0, Budget, Exact, Gate, Gating, HardConcrete, Threshold
from tombola.masks import Units, removals
from tombola.models.finding import find_model
from tombola.objectives import Objective
from tombola.objectives.building import objective_of
from tombola.objectives.cross_entropy import CrossEntropyLoss
from tombola.objectives.freelb import FreeLBAdversary
from tombola.training import TrainSettings
from tombola.training.clipping import clip
from tombola.training.optimizers import optimizer_of

BATCH, PASSES, SPARSITY = 32, 5, 0.7
Batch = dict[str, torch.Tensor]


def sentences() -> Batch:
    """A batch of random tokens, as long as sentences of SST-2's validation set: 25 tokens with a spread of 11."""
    rng = np.random.default_rng(0)
    lengths = torch.from_numpy(np.clip(rng.normal(25, 11, BATCH), 6, 60).astype(np.int64))
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    ids = torch.randint(1000, 20000, mask.shape) * mask
    return {"input_ids": ids, "attention_mask": mask.long(), "labels": torch.randint(0, 2, (BATCH,))}


def minilm() -> PreTrainedModel:
    torch.manual_seed(0)
    folder = find_model("minilm").folder
    return AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2).train()


def plain_passes(batch: Batch) -> Callable[[], None]:
    """Five forward and backward passes of a model whose every parameter takes gradients."""
    model, objective = minilm(), objective_of(CrossEntropyLoss())

    def step() -> None:
        for _ in range(PASSES):
            objective.step(model, batch, lambda loss: loss.backward())
        model.zero_grad()

    return step


def plain_step(batch: Batch, fused: bool) -> Callable[[], None]:
    """One step of plain training, with AdamW as torch gives it or as Tombola takes it: fused."""
    model, objective = minilm(), objective_of(CrossEntropyLoss())
    kind, arguments = optimizer_of(TrainSettings())
    optimizer = kind(model.parameters(), **{**arguments, "fused": fused})

    def step() -> None:
        objective.step(model, batch, lambda loss: loss.backward())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        model.zero_grad()

    return step


def search_step(batch: Batch, gate: Gate, budget: Budget, objective: Objective) -> Callable[[], None]:
    """One whole step of a search over single weights, the optimizer's included."""
    model = minilm()
    gating = Gating(Units.of(model, "weight"), model, gate, budget, seed=0, sparsity=SPARSITY, scope="local")
    gating.hold(model)
    kind, arguments = optimizer_of(TrainSettings(learning_rate=1e-3))
    optimizer = kind(gating.parameters(), weight_decay=1e-6, **arguments)

    def step() -> None:
        gating.sample(0)
        objective.step(model, batch, lambda loss: loss.backward())
        gating.collect(0.5)
        clip(gating.parameters(), 1.0)
        optimizer.step()
        model.zero_grad()

    return step


def reset_of(gating: Gating) -> Callable[[], None]:
    return lambda: gating.reset(SPARSITY)


def kthvalues_of(gating: Gating) -> Callable[[], None]:
    """Each matrix's own threshold, as masks are usually held at a sparsity."""

    def reset() -> None:
        for score in gating.scores:
            torch.kthvalue(score.detach().flatten(), removals(SPARSITY, score.numel()))

    return reset


def bert_base() -> Gating:
    """Threshold gates over BERT-base's matrices, their scores moved as training moves them."""
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(BertConfig())
    gate = Threshold(initial="soft")
    gating = Gating(Units.of(model, "weight"), model, gate, Exact(), seed=0, sparsity=SPARSITY, scope="local")
    with torch.no_grad():
        for score in gating.scores:
            score.add_(torch.randn(score.shape), alpha=1e-3)
    return gating


def seconds(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def compare(ours: Callable[[], None], plain: Callable[[], None], pairs: int) -> tuple[float, float, float]:
    """The median times of both, and the median ratio of neighbours; which comes first alternates."""
    ours(), plain()
    times: list[tuple[float, float]] = []
    for pair in range(pairs):
        if pair % 2:
            one, other = seconds(ours), seconds(plain)
        else:
            other, one = seconds(plain), seconds(ours)
        times.append((one, other))
    middle = [statistics.median(column) for column in zip(*times, strict=True)]
    return middle[0], middle[1], statistics.median(one / other for one, other in times)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pairs", type=int, default=10)
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    batch, gating = sentences(), bert_base()
    adversarial = objective_of(CrossEntropyLoss(), FreeLBAdversary(steps=PASSES))
    rows = {
        "search, 5 adversarial passes ÷ 5 plain passes": (
            search_step(batch, HardConcrete(), L0(), adversarial),
            plain_passes(batch),
            "1.06",
        ),
        "mask training ÷ plain training with torch's AdamW": (
            search_step(batch, Threshold(), Exact(), objective_of(CrossEntropyLoss())),
            plain_step(batch, fused=False),
            "0.95",
        ),
        "mask training ÷ plain training with fused AdamW": (
            search_step(batch, Threshold(), Exact(), objective_of(CrossEntropyLoss())),
            plain_step(batch, fused=True),
            "0.95",
        ),
        "85.5 M thresholds reset ÷ kthvalue of each matrix": (reset_of(gating), kthvalues_of(gating), "0.6"),
    }
    table = Table(title=f"{BATCH} x {batch['input_ids'].shape[1]} tokens, {given.threads} thread(s)")
    for column in ("", "ours, ms", "plain, ms", "ratio", "goal"):
        table.add_column(column, justify="right" if column else "left")
    for name, (ours, plain, goal) in rows.items():
        one, other, ratio = compare(ours, plain, given.pairs)
        table.add_row(name, f"{1e3 * one:.0f}", f"{1e3 * other:.0f}", f"{ratio:.3f}", f"≤ {goal}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
