"""What learned masks cost: steps of a search beside plain passes, and the reset of a threshold beside kthvalue.

    python benchmarks/gated_search.py [--threads 2]

MiniLM, batches of 32 sentences as long as SST-2's; BERT-base's 85,524,480 scores. The search has a hard-concrete gate
on every weight. Plain training takes AdamW as torch gives it, and the fused one that Tombola takes.
"""

import argparse
from collections.abc import Callable, Iterator

import numpy as np
import torch
from measuring import Figure, in_turns, run
from transformers import AutoModelForSequenceClassification, BertConfig, PreTrainedModel

from tombola.foundations.quiet import quiet
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
    with quiet():
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


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    batch, rounds = sentences(), 4 if given.quick else 20
    adversarial = objective_of(CrossEntropyLoss(), FreeLBAdversary(steps=PASSES))
    ways = {"ours": search_step(batch, HardConcrete(), L0(), adversarial), "plain": plain_passes(batch)}
    turns = in_turns(ways, max(3, rounds // 2))
    yield turns.ratio("a search step of 5 adversarial passes ÷ 5 plain passes", "ours", "plain", "≤ 1.06")
    ways = {
        "ours": search_step(batch, Threshold(), Exact(), objective_of(CrossEntropyLoss())),
        "torch": plain_step(batch, fused=False),
        "fused": plain_step(batch, fused=True),
    }
    turns = in_turns(ways, rounds)
    yield turns.ratio("mask training ÷ a plain step, torch's AdamW", "ours", "torch", "≤ 0.95")
    yield turns.ratio("mask training ÷ a plain step, fused AdamW", "ours", "fused", "≤ 0.95")
    gating = bert_base()
    turns = in_turns({"ours": reset_of(gating), "torch": kthvalues_of(gating)}, max(3, rounds // 2))
    yield turns.ratio("85.5 M thresholds reset ÷ kthvalue of each matrix", "ours", "torch", "≤ 0.6")


if __name__ == "__main__":
    run(__doc__, figures)
