"""One process of a data-parallel shared training: `parallel.py FOLDER ACCUMULATE DROPOUT [STEP]`, killed after STEP."""

import os
import sys
from pathlib import Path

from safetensors.torch import save_file

from tests.training.multitask.toy import shared, snapshot, toy_masks, toy_parts, toy_share
from tests.two_processes import left_together
from tombola.training.multitask.model import SharedModel


def run(folder: Path, batch_size: int, accumulate: int, dropout: float, die_after: int = 0) -> SharedModel:
    """Train three tasks on one encoder under their masks; every process dies in the step after `die_after`."""
    model = shared()

    def progress(step: int, steps: int, figures: dict[str, float]) -> None:
        if step == die_after + 1:
            os._exit(9)

    toy_share(
        model,
        folder,
        toy_parts((64, 30, 14)),  # the same steps for one process and for two; the last batch is smaller
        masks=toy_masks(model),
        batch_size=batch_size,
        accumulate=accumulate,
        group_by_length=False,
        dropout=dropout,
        epsilon=1e-2,
        weight_decay=0.1,
        checkpoint_minutes=0 if die_after else 999,
        progress=progress if die_after else None,
    )
    return model


if __name__ == "__main__":
    place, accumulate, dropout, *after = sys.argv[1:]
    model = run(Path(place), 4, int(accumulate), float(dropout), int((after or ["0"])[0]))
    with left_together() as first:
        if first:
            save_file(snapshot(model), Path(place) / "trained.safetensors")
