"""A run that saves at every step and takes its time, to be killed from outside: `killable.py FOLDER SECONDS`."""

import sys
import time
from pathlib import Path

from tests.tiny import tiny
from tests.training.toy import random_mask, toy_train
from tombola.training import TrainLog


def run(folder: Path, pause: float = 0.0) -> tuple[object, TrainLog]:
    """Train a tiny BERT under a mask, with dropout and accumulation, pausing after each step."""
    model = tiny("bert", num_labels=2)
    log = toy_train(
        model,
        folder,
        mask=random_mask(model),
        epochs=3,
        batch_size=4,
        accumulate=2,
        checkpoint_minutes=0,
        progress=lambda step, steps, figures: time.sleep(pause),
    )
    return model, log


if __name__ == "__main__":
    run(Path(sys.argv[1]), float(sys.argv[2]))
