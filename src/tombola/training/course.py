"""What happens between the steps of a run: batches, evaluations, checkpoints and the end."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from accelerate.utils import broadcast_object_list
from transformers import PreTrainedModel, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tombola.training.batches import ShuffledBatches
from tombola.training.seeding import undisturbed

if TYPE_CHECKING:
    from tombola.tasks import Collate, Encoded

Progress = Callable[[int, int, dict[str, float]], None]
"""Called after each step with the step, the number of steps, and the newest loss, learning rate and epoch."""


@dataclass(frozen=True)
class Evaluation:
    """A function called on the model during training, for example to save it, score it or plot a curve.

    The main process calls it; other processes wait. The model is in eval mode, and the run's random numbers are
    unaffected, so that weights are bit-equal with and without it. A run that was killed and resumed may call it twice
    for a step, but never skips one.

    Attributes:
        on_evaluate: Called with the number of optimizer steps taken, and the model.
        every: `epoch` for after each whole epoch, or a number of optimizer steps.
    """

    on_evaluate: Callable[[int, PreTrainedModel], None]
    every: int | Literal["epoch"] = "epoch"

    def due(self, state: TrainerState) -> bool:
        """Return whether it is called after this step."""
        if self.every == "epoch":
            return float(state.epoch).is_integer()
        return int(state.global_step) % self.every == 0


class Course(TrainerCallback):
    """Controls one run. `progress` and `evaluations` do not affect its random numbers."""

    def __init__(
        self,
        batches: ShuffledBatches,
        data: "Encoded",
        collate: "Collate",
        checkpoint_minutes: float,
        end: int,
        progress: Progress | None = None,
        evaluations: Sequence[Evaluation] = (),
    ) -> None:
        self.batches = batches
        self.data = data
        self.collate = collate
        self.checkpoint_seconds = 60 * checkpoint_minutes
        self.end = end
        self.progress = progress
        self.evaluations = evaluations
        self._saved = time.monotonic()

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Set the epoch of sampler, data and collator: the Trainer misses them in a resumed, sharded loader."""
        self.batches.set_epoch(int(state.epoch))
        self.data.set_epoch(int(state.epoch))
        self.collate.set_epoch(int(state.epoch))

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> TrainerControl:
        """Stop, log and save when due. Evaluations precede the checkpoint, so that none is skipped."""
        control.should_training_stop |= state.global_step >= self.end
        control.should_log |= control.should_training_stop
        for evaluation in self.evaluations if state.is_world_process_zero else ():
            if evaluation.due(state):
                kwargs["model"].eval()
                with undisturbed():
                    evaluation.on_evaluate(state.global_step, kwargs["model"])
        if self.progress is not None and state.is_world_process_zero:
            newest = state.log_history[-1] if state.log_history else {}
            figures = {name: newest[name] for name in ("loss", "learning_rate") if name in newest}
            self.progress(state.global_step, self.end, {"epoch": state.epoch, **figures})
        # Only when the loss is logged too: the running sum since the last point of the curve is not saved.
        if control.should_log and not control.should_training_stop:
            control.should_save |= self._due()
        return control

    def _due(self) -> bool:
        """Return whether a checkpoint is due, by the main process's clock."""
        due: bool
        (due,) = broadcast_object_list([time.monotonic() - self._saved >= self.checkpoint_seconds])
        return due

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Restart the clock."""
        self._saved = time.monotonic()
