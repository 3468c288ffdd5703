"""Checkpoints of a run in progress: safetensors and JSON, visible only when complete.

A checkpoint is written under a temporary name, flushed to disk and renamed; only then is the previous one deleted. A
process killed at any moment therefore leaves the last complete checkpoint behind.
"""

import json
import logging
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from transformers import TrainerState

from tombola.errors import DamagedArtefact, TombolaError
from tombola.foundations.checksums import CHECKSUMS, check_checksums, write_checksums

logger = logging.getLogger(__name__)

MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
TRAINER_STATE = "trainer_state.json"  # the name under which transformers.Trainer looks for it


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints in a folder. They belong to one run, identified by `run`."""

    folder: Path
    run: dict[str, Any]

    def last(self) -> Path | None:
        """Return the newest complete checkpoint, if any. Raise an error if another run wrote it.

        A damaged checkpoint is removed, and the run resumes from the one before it or starts over.
        """
        newest = next((folder for folder in reversed(self._complete()) if _is_whole(folder)), None)
        if newest is None:
            return None
        saved = _read_json(newest / STATE)["run"]
        differing = [name for name, value in self.run.items() if saved.get(name) != value]
        if differing:
            raise TombolaError(
                f"{newest} is a checkpoint of another run (its {', '.join(differing)} differ): "
                "delete it, or train in another folder"
            )
        return newest

    def write(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        scheduler: LRScheduler,
        trainer_state: TrainerState,
        rng: list[dict[str, Any]],
        seconds: float,
        scaler: dict[str, Any] | None = None,
    ) -> Path:
        """Write a checkpoint, then remove the older ones."""
        older = self._complete()
        final = self.folder / f"step-{trainer_state.global_step}"
        partial = self.folder / f"partial-{final.name}"
        shutil.rmtree(partial, ignore_errors=True)
        tensors, scalars = _split(optimizer.state_dict())
        state = {"run": self.run, "optimizer": scalars, "scheduler": scheduler.state_dict(), "scaler": scaler}
        try:
            partial.mkdir(parents=True)
            save_model(model, str(partial / MODEL))
            save_file(tensors, partial / OPTIMIZER)
            (partial / STATE).write_text(json.dumps({**state, "rng": rng, "seconds": seconds}))
            trainer_state.save_to_json(str(partial / TRAINER_STATE))
            write_checksums(partial)
            for path in (*partial.iterdir(), partial):
                _flush(path)
            partial.rename(final)
        except (SafetensorError, OSError) as error:
            shutil.rmtree(partial, ignore_errors=True)
            kept = f"; {older[-1]} is kept" if older else ""
            raise TombolaError(f"the checkpoint {final} could not be written ({error}){kept}") from error
        _flush(self.folder)
        for checkpoint in older:
            _remove(checkpoint)
        return final

    def _complete(self) -> list[Path]:
        return sorted(self.folder.glob("step-*"), key=step_of)


def _is_whole(checkpoint: Path) -> bool:
    try:
        if not (checkpoint / CHECKSUMS).is_file():
            raise DamagedArtefact(f"{checkpoint} has no {CHECKSUMS}; training continues without it")
        check_checksums(checkpoint, "training continues without it")
    except DamagedArtefact as error:
        logger.warning("%s", error)
        _remove(checkpoint)
        return False
    return True


def _remove(checkpoint: Path) -> None:
    """Rename a checkpoint before deleting it, so that a kill leaves nothing that looks complete."""
    gone = checkpoint.with_name(f"partial-{checkpoint.name}")
    shutil.rmtree(gone, ignore_errors=True)
    checkpoint.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def step_of(checkpoint: Path) -> int:
    """Return the optimizer step after which a checkpoint was written."""
    return int(checkpoint.name.removeprefix("step-"))


def require_processes(checkpoint: Path, processes: int) -> None:
    """Raise an error if another number of processes wrote a checkpoint: batches and steps would not fit together."""
    saved = len(_read_json(checkpoint / STATE)["rng"])
    if saved != processes:
        raise TombolaError(
            f"{checkpoint} was written by a run on {saved} process{'' if saved == 1 else 'es'}, but this one has "
            f"{processes}: start as many as before, or delete the checkpoint to train from the start"
        )


def restore_model(checkpoint: Path, model: nn.Module) -> None:
    """Load a checkpoint's weights into the model, in place."""
    try:
        load_model(model, checkpoint / MODEL)
    except (SafetensorError, OSError) as error:
        raise _damaged(checkpoint, error) from error


def restore_optimizer(checkpoint: Path, optimizer: Optimizer, scheduler: LRScheduler) -> None:
    """Restore the optimizer's moments and the learning rates."""
    state = _read_json(checkpoint / STATE)
    try:
        tensors = load_file(checkpoint / OPTIMIZER)
    except (SafetensorError, OSError) as error:
        raise _damaged(checkpoint, error) from error
    optimizer.load_state_dict(_join(tensors, state["optimizer"]))
    scheduler.load_state_dict(state["scheduler"])


def saved_rng(checkpoint: Path, process: int) -> dict[str, Any]:
    """Return the saved random states of a process."""
    states: list[dict[str, Any]] = _read_json(checkpoint / STATE)["rng"]
    return states[process]


def saved_scaler(checkpoint: Path) -> dict[str, Any]:
    """Return the saved state of the gradient scaler."""
    state: dict[str, Any] = _read_json(checkpoint / STATE)["scaler"]
    return state


def saved_seconds(checkpoint: Path) -> float:
    """Return the training time up to the checkpoint, in seconds."""
    return float(_read_json(checkpoint / STATE)["seconds"])


def _split(state: dict[str, Any]) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Split an optimizer's state into named tensors and JSON."""
    tensors: dict[str, torch.Tensor] = {}
    scalars: dict[str, dict[str, Any]] = {}
    for index, entries in state["state"].items():
        for name, value in entries.items():
            if isinstance(value, torch.Tensor):
                tensors[f"{index}.{name}"] = value.contiguous()
            else:
                scalars.setdefault(str(index), {})[name] = value
    return tensors, {"state": scalars, "param_groups": state["param_groups"]}


def _join(tensors: dict[str, torch.Tensor], scalars: dict[str, Any]) -> dict[str, Any]:
    state: dict[int, dict[str, Any]] = {
        int(index): dict(entries) for index, entries in scalars["state"].items()
    }
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    groups = [
        {key: tuple(value) if key == "betas" else value for key, value in group.items()}
        for group in scalars["param_groups"]
    ]
    return {"state": state, "param_groups": groups}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise _damaged(path.parent, error) from error
    return content


def _damaged(checkpoint: Path, error: Exception) -> DamagedArtefact:
    return DamagedArtefact(
        f"checkpoint {checkpoint} cannot be read ({error}): delete it to start the run again"
    )


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
