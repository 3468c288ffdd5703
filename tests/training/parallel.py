"""One process of a data-parallel run: `parallel.py FOLDER DROPOUT [STEP] [EVERY]`.

It is killed after STEP if that is not 0, and looks at the model after EVERY so many steps.
"""

import os
import sys
from pathlib import Path

from safetensors.torch import save_model
from transformers import PreTrainedModel

from tests.tiny import tiny
from tests.training.toy import random_mask, toy_data, toy_train
from tests.two_processes import left_together
from tombola.training.course import Evaluation


def run(folder: Path, batch_size: int, dropout: float, die_after: int = 0, every: int = 0) -> PreTrainedModel:
    """Train a tiny BERT under a mask; every process dies in the step after `die_after`."""
    model = tiny("bert", num_labels=2)

    def progress(step: int, steps: int, figures: dict[str, float]) -> None:
        if step == die_after + 1:
            os._exit(9)

    toy_train(
        model,
        folder,
        toy_data(40),
        mask=random_mask(model),
        batch_size=batch_size,
        group_by_length=False,
        dropout=dropout,
        epsilon=1e-2,
        checkpoint_minutes=0 if die_after else 999,
        progress=progress if die_after else None,
        evaluations=[Evaluation(lambda step, model: None, every)] if every else [],
    )
    return model


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    model = run(folder, 4, float(sys.argv[2]), *map(int, sys.argv[3:]))
    with left_together() as first:
        if first:
            save_model(model, str(folder / "trained.safetensors"))
