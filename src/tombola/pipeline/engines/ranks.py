"""One run on many devices: `accelerate launch -m tombola run …` starts a process (a rank) for each.

All ranks train together. Stages without training run on rank 0 while the others wait, and only rank 0 writes.
"""

import os
import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tombola.errors import TombolaError
from tombola.store.stage import WORK, Stage
from tombola.store.store import Store

PATIENCE = timedelta(days=7)
"""How long ranks wait for each other: rank 0 may have to wait for another process that runs the same stage."""


def ranks() -> int:
    """Return the number of processes that this run was launched with."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main() -> bool:
    """Return whether this process writes: it is the only one, or rank 0."""
    return os.environ.get("RANK", "0") == "0"


def make_on_all_ranks(stage: Stage[Any], store: Store, run: Callable[[Path], None]) -> bool:
    """Run a stage on all ranks, or on rank 0 alone if it does not train; return whether it ran."""
    if not stage.distributed:
        return store.make(stage, run) if is_main() else _wait_for(stage, store)
    if not is_main():
        return _train_along(stage, store, run)

    def lead(folder: Path) -> None:
        forget_other_ranks(folder / WORK)
        _shared((stage.name, str(folder)))
        run(folder)

    ran = store.make(stage, lead)
    if not ran:
        _shared((stage.name, None))
    return ran


def forget_other_ranks(work: Path) -> None:
    """Remove what a run of another number of processes left of a training, unless it left a checkpoint.

    Its epochs end at other steps, so its models, scores and attacked texts would mix with those of this run. Training
    refuses to resume from its checkpoint.

    Args:
        work: The stage's folder for what survives a kill.
    """
    noted, processes = work / "processes.txt", str(ranks())
    if noted.is_file() and noted.read_text() != processes:
        if any(work.glob("checkpoints/step-*")):
            return
        shutil.rmtree(work)
    work.mkdir(exist_ok=True)
    noted.write_text(processes)


def _train_along(stage: Stage[Any], store: Store, run: Callable[[Path], None]) -> bool:
    """Train like rank 0, from the same checkpoint, in a temporary folder."""
    name, folder = _shared(None)
    while name != stage.name and folder is None:  # found finished by this rank from the beginning
        name, folder = _shared(None)
    if name != stage.name:
        raise TombolaError(
            f"the processes of this run disagree on what is finished: the first works on {name}, this one on "
            f"{stage.name}. Start it again while no other run works on the same stages"
        )
    if folder is None:
        return False
    with TemporaryDirectory() as scratch:
        if (Path(folder) / WORK).is_dir():
            shutil.copytree(Path(folder) / WORK, Path(scratch) / WORK)
        run(Path(scratch))
    return _wait_for(stage, store)


def _wait_for(stage: Stage[Any], store: Store) -> bool:
    """Wait until rank 0 has finished the stage. If it dies, the launcher ends this process too."""
    while not store.has(stage):
        time.sleep(0.1)
    return False


def _shared(message: tuple[str, str | None] | None) -> tuple[str, str | None]:
    """Return the message of rank 0 on all ranks: the name of a stage, and its folder unless it is finished."""
    import torch
    from accelerate import PartialState
    from accelerate.utils import broadcast_object_list

    PartialState(cpu=not torch.accelerator.is_available(), timeout=PATIENCE)
    received: tuple[str, str | None]
    (received,) = broadcast_object_list([message])
    return received
