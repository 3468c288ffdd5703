"""One prune and rewind of iterative magnitude pruning at BERT-base's size, against the plain PyTorch way.

    python benchmarks/imp.py

Plain: `kthvalue` over the concatenated magnitudes, a boolean mask per matrix, a copy of the pre-trained weights
times the mask. Ours: draw from the trained weights within the last round's mask, copy the pre-trained weights back
and zero what is removed. Memory is the growth of the process over a round, beyond weights and pre-trained copy.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial

import torch
from measuring import Figure, PeakMemory, in_turns, run
from transformers import AutoConfig, AutoModel

from tombola.masks import Mask, Scores, Units, draw

FIRST, SECOND = 0.1, 0.2  # sparsities of two rounds

Tensors = dict[str, torch.Tensor]


def plain(weights: Tensors, original: Tensors, sparsity: float, state: Tensors) -> None:
    magnitudes = [
        (weight.abs() * state[name] if state else weight.abs()).flatten() for name, weight in weights.items()
    ]
    scores = torch.cat(magnitudes)
    threshold = scores.kthvalue(int(sparsity * scores.numel())).values
    state.update({name: weight.abs() > threshold for name, weight in weights.items()})
    for name, weight in weights.items():
        weight.copy_(original[name] * state[name])


def ours(model: torch.nn.Module, units: Units, original: Tensors, sparsity: float, state: list[Mask]) -> None:
    mask = draw(Scores.magnitude(units, model), sparsity=sparsity, within=state[-1] if state else None)
    for name, weight in units.matrices(model).items():
        weight.copy_(original[name])
    mask.apply(model)
    state[:] = [mask]


@torch.no_grad()
def figures(given: argparse.Namespace) -> Iterator[Figure]:
    model = AutoModel.from_config(AutoConfig.for_model("bert"))
    units = Units.of(model, "weight")
    weights = units.matrices(model)
    original = {name: weight.clone() for name, weight in weights.items()}
    trained = {name: weight + 0.01 * torch.randn_like(weight) for name, weight in weights.items()}

    masks: list[Mask] = []
    bools: Tensors = {}

    def train() -> None:
        for name, weight in weights.items():
            weight.copy_(trained[name])

    ways: dict[str, Callable[[float], None]] = {
        "ours": lambda sparsity: ours(model, units, original, sparsity, masks),
        "plain": lambda sparsity: plain(weights, original, sparsity, bools),
    }
    # Ours comes first: memory that the plain way has freed would hide what ours takes.
    extra = {}
    for name, prune in ways.items():
        peaks = []
        for sparsity in (FIRST, SECOND):
            train()
            with PeakMemory() as memory:
                prune(sparsity)
            peaks.append(memory.extra / (4 * units.weights))
        extra[name] = max(peaks)
    turns = in_turns(
        {name: partial(prune, SECOND) for name, prune in ways.items()}, 2 if given.quick else 7, before=train
    )
    yield turns.ratio("prune and rewind ÷ kthvalue and boolean masks", "ours", "plain", "≤ 0.5")
    yield Figure("extra memory of a round ÷ the weights", extra["ours"], "≤ 0.3")
    yield Figure("the same, plain way", extra["plain"])


if __name__ == "__main__":
    run(__doc__, figures)
