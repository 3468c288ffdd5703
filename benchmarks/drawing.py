"""How fast a mask is drawn, stored and fingerprinted at the size of BERT-base, beside plain torch.

    python benchmarks/drawing.py [--sparsity 0.7] [--threads 2]

85,524,480 scores in BERT-base's 73 matrices. The rivals rank the concatenated scores with `torch.kthvalue`
and `torch.topk`, and build boolean masks; their time includes both. Extra memory is the highest peak of the process's
resident memory above what it was before the call. The entropy is that of a coin for every weight.
"""

import argparse
import tempfile
from collections.abc import Iterator
from math import log2
from pathlib import Path

import torch
from measuring import Figure, PeakMemory, in_turns, run
from transformers import AutoModelForSequenceClassification, BertConfig

from tombola.masks import Mask, Scores, Units, draw, fingerprint, removals


def by_kthvalue(scores: Scores, remove: int) -> dict[str, torch.Tensor]:
    threshold = torch.kthvalue(torch.cat([score.reshape(-1) for score in scores.values()]), remove).values
    return {name: score > threshold for name, score in scores.items()}


def by_topk(scores: Scores, remove: int) -> dict[str, torch.Tensor]:
    flat = torch.cat([score.reshape(-1) for score in scores.values()])
    threshold = torch.topk(flat, remove, largest=False, sorted=False).values.max()
    return {name: score > threshold for name, score in scores.items()}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sparsity", type=float, default=0.7)


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(BertConfig())
    units = Units.of(model, "weight")
    scores = Scores.total(units, {name: matrix.abs() for name, matrix in units.matrices(model).items()})
    remove = removals(given.sparsity, units.count)
    with PeakMemory() as memory:
        mask: Mask = draw(scores, given.sparsity)
    assert mask.removed == remove
    rounds = 2 if given.quick else 6
    ways = {
        "draw": lambda: draw(scores, given.sparsity),
        "kthvalue": lambda: by_kthvalue(scores, remove),
        "topk": lambda: by_topk(scores, remove),
    }
    turns = in_turns(ways, rounds)
    yield turns.ratio("drawing 70 % of 85.5 M scores ÷ torch.kthvalue", "draw", "kthvalue", "≤ 0.5")
    yield turns.ratio("torch.topk ÷ torch.kthvalue", "topk", "kthvalue")
    yield Figure("extra memory of drawing ÷ the scores", memory.extra / (4 * units.count), "≤ 0.3")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mask.safetensors"
        stored = {"save": lambda: mask.save(path), "load": lambda: Mask.load(path)}
        mask.save(path)
        assert Mask.load(path) == mask
        turns = in_turns({**stored, "fingerprint": lambda: fingerprint(model)}, rounds)
        share = mask.removed / units.count
        entropy = -units.count * (share * log2(share) + (1 - share) * log2(1 - share)) / 8
        yield Figure("a mask's file ÷ its entropy", path.stat().st_size / entropy, "≤ 1.05")
    yield turns.time("saving a mask of 85.5 M weights", "save")
    yield turns.time("loading it", "load", "≤ 0.5")
    yield turns.time("the fingerprint of BERT-base", "fingerprint")


if __name__ == "__main__":
    run(__doc__, figures, options)
