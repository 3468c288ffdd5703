"""Keeping the table of what was frozen, in anybody's `transformers.Trainer`."""

from pathlib import Path
from typing import Any

from accelerate.optimizer import AcceleratedOptimizer
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


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
        optimizer = kwargs["optimizer"]
        if isinstance(optimizer, AcceleratedOptimizer) and optimizer.optimizer.risk is not None:
            optimizer.optimizer.risk.scaler = optimizer.scaler

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Write the table."""
        optimizer = kwargs["optimizer"]
        if isinstance(optimizer, AcceleratedOptimizer):
            optimizer = optimizer.optimizer
        if state.is_world_process_zero:
            optimizer.freezing().write(self.path)
