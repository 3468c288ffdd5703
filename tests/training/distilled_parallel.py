"""One process of a data-parallel distillation: `distilled_parallel.py FOLDER`."""

import sys
from pathlib import Path

from safetensors.torch import save_model
from transformers import PreTrainedModel

from tests.tiny import tiny
from tests.training.toy import toy_data, toy_train
from tests.two_processes import left_together
from tombola.objectives.distillation import Distill


def run(folder: Path, batch_size: int) -> PreTrainedModel:
    """Train a tiny BERT on the outputs and the hidden states of a wider one, without dropout."""
    model = tiny("bert", num_labels=2)
    toy_train(
        model,
        folder,
        toy_data(40),
        teacher=tiny("bert", num_labels=2, seed=3, hidden_size=24),
        distill=Distill(hidden=0.5),
        batch_size=batch_size,
        group_by_length=False,
        dropout=0.0,
        epsilon=1e-2,
    )
    return model


if __name__ == "__main__":
    model = run(Path(sys.argv[1]), 4)
    with left_together() as first:
        if first:
            save_model(model, str(Path(sys.argv[1]) / "trained.safetensors"))
