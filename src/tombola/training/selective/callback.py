"""A callback that saves the table of frozen tensors, for any `transformers.Trainer`."""

from pathlib import Path
from typing import Any

from accelerate.optimizer import AcceleratedOptimizer
from torch.optim import Optimizer
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tombola.training.selective.optimizer import SelectiveAdamW


class KeepFreezing(TrainerCallback):
    """Writes how often a `SelectiveAdamW` froze each tensor when training ends.

    When training begins, it gives First the gradient scaler, if 16-bit gradients use one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Let First scale its gradients like all others."""
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
    """Return the optimizer without the Trainer's wrapper."""
    bare = optimizer.optimizer if isinstance(optimizer, AcceleratedOptimizer) else optimizer
    assert isinstance(bare, SelectiveAdamW)
    return bare
