"""One process of a data-parallel search: `gated_parallel.py FOLDER ACCUMULATE SAMPLE [RATE]`.

The first leaves the scores, and the model; its weights are trained too where they have a learning rate.
"""

import sys
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from tests.tiny import tiny
from tests.training.toy import TOKENIZER, toy_data
from tests.two_processes import left_together
from tombola.gates import L0, Gating, HardConcrete
from tombola.masks import Units
from tombola.objectives.settings import Adversary
from tombola.tasks import Collate
from tombola.training import TrainSettings
from tombola.training.gated import train_gates


def run(
    folder: Path, batch_size: int, accumulate: int, sample: Any, weights_learning_rate: float | None = None
) -> tuple[Gating, PreTrainedModel]:
    """Search over the neurons and heads of a tiny BERT, against an adversary."""
    model = tiny("bert", num_labels=2)
    gating = Gating(Units.of(model, "head+neuron"), model, HardConcrete(), L0(), seed=1)
    settings = TrainSettings(
        epochs=2,
        batch_size=batch_size,
        accumulate=accumulate,
        learning_rate=0.1,
        dropout=0.0,
        epsilon=1e-2,
        group_by_length=False,
        adversary=Adversary(steps=2, initial=0.0),
    )
    collate = Collate(TOKENIZER)
    options = {"collate": collate, "seed": 1, "precision": "fp32", "folder": folder, "sample": sample}
    options["weights_learning_rate"] = weights_learning_rate
    train_gates(model, toy_data(48), settings, gating, **options)
    return gating, model


if __name__ == "__main__":
    gating, model = run(Path(sys.argv[1]), 4, int(sys.argv[2]), sys.argv[3], *map(float, sys.argv[4:]))
    with left_together() as first:
        if first:
            gating.learned().save(Path(sys.argv[1]) / "scores.safetensors")
            model.save_pretrained(sys.argv[1])
