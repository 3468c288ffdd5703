"""What happens between the steps of a run: its batches, its watchers, its checkpoints and its end."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from accelerate.utils import broadcast_object_list
from transformers import PreTrainedModel, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tombola.training.batches import ShuffledBatches
from tombola.training.seeding import undisturbed

if TYPE_CHECKING:
    from tombola.tasks import Collate

Progress = Callable[[int, int, dict[str, float]], None]
"""Called after each step with the step, the number of steps, and the newest loss, learning rate and epoch."""

EpochHook = Callable[[int, PreTrainedModel], None]
"""Called after each whole epoch with its number, from 1, and the model in evaluation mode."""


class Course(TrainerCallback):
    """Steers one run. What watches it (`progress`, `on_epoch`) draws no random numbers from it."""

    def __init__(
        self,
        batches: ShuffledBatches,
        collate: "Collate",
        checkpoint_minutes: float,
        stop_at: float | None = None,
        progress: Progress | None = None,
        on_epoch: EpochHook | None = None,
    ) -> None:
        self.batches = batches
        self.collate = collate
        self.checkpoint_seconds = 60 * checkpoint_minutes
        self.stop_at = stop_at
        self.progress = progress
        self.on_epoch = on_epoch
        self._saved = time.monotonic()

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Tell sampler and collator the epoch: the Trainer does not reach them through a resumed, sharded loader."""
        self.batches.set_epoch(int(state.epoch))
        self.collate.set_epoch(int(state.epoch))

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> TrainerControl:
        """Stop, log and save in time. The epoch's hook comes before a checkpoint, so that none is skipped."""
        end = min(self.stop_at or state.max_steps, state.max_steps)
        control.should_training_stop |= state.global_step >= end
        control.should_log |= control.should_training_stop
        if self.on_epoch is not None and float(state.epoch).is_integer():
            kwargs["model"].eval()
            with undisturbed():
                self.on_epoch(int(state.epoch), kwargs["model"])
        if self.progress is not None and state.is_world_process_zero:
            newest = state.log_history[-1] if state.log_history else {}
            figures = {name: newest[name] for name in ("loss", "learning_rate") if name in newest}
            self.progress(state.global_step, end, {"epoch": state.epoch, **figures})
        # Only where the loss is logged too: the sum since the last point of the curve is not saved.
        if control.should_log and not control.should_training_stop:
            control.should_save |= self._due()
        return control

    def _due(self) -> bool:
        """Whether it is time to save by the clock of the main process."""
        (due,) = broadcast_object_list([time.monotonic() - self._saved >= self.checkpoint_seconds])
        return due

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start the clock anew."""
        self._saved = time.monotonic()
