"""Keeping the table of what was frozen, in anybody's `transformers.Trainer`."""

from pathlib import Path
from typing import Any

from accelerate.optimizer import AcceleratedOptimizer
from torch.optim import Optimizer
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tombola.training.selective.optimizer import SelectiveAdamW


class KeepFreezing(TrainerCallback):
    """Writes how often a `SelectiveAdamW` froze each tensor, at the end of the training.

    At its beginning it makes what First measures known to the gradient scaler, where 16-bit gradients have one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Scale the gradients that First measures like all others."""
        risk = selective_optimizer(kwargs["optimizer"]).risk
        if risk is not None and isinstance(kwargs["optimizer"], AcceleratedOptimizer):
            risk.scaler = kwargs["optimizer"].scaler

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Write the table."""
        if state.is_world_process_zero:
            selective_optimizer(kwargs["optimizer"]).freezing().write(self.path)


def selective_optimizer(optimizer: Optimizer) -> SelectiveAdamW:
    """The optimizer itself, without what a Trainer has wrapped around it."""
    bare = optimizer.optimizer if isinstance(optimizer, AcceleratedOptimizer) else optimizer
    assert isinstance(bare, SelectiveAdamW)
    return bare
