"""What happens between the steps of a run: its batches, its watchers, its checkpoints and its end."""

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
    """A look at the model while it trains: keep it, score it, draw a curve.

    The main process calls it; other processes wait. It finds the model in evaluation mode and draws no random
    numbers from the run, so that weights are bit-equal with it and without. A run that was killed and resumed may
    call it a second time for a step, but leaves none out.

    Attributes:
        on_evaluate: Called with the number of optimizer steps taken, and the model.
        every: `epoch`: after each whole epoch; else after every so many optimizer steps.
    """

    on_evaluate: Callable[[int, PreTrainedModel], None]
    every: int | Literal["epoch"] = "epoch"

    def due(self, state: TrainerState) -> bool:
        """Whether it is called after this step."""
        if self.every == "epoch":
            return float(state.epoch).is_integer()
        return int(state.global_step) % self.every == 0


class Course(TrainerCallback):
    """Steers one run. What watches it (`progress`, `evaluations`) draws no random numbers from it."""

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
        """Tell sampler, data and collator the epoch: the Trainer does not reach them in a resumed, sharded loader."""
        self.batches.set_epoch(int(state.epoch))
        self.data.set_epoch(int(state.epoch))
        self.collate.set_epoch(int(state.epoch))

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> TrainerControl:
        """Stop, log and save in time. Evaluations come before a checkpoint, so that none is skipped."""
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
        # Only where the loss is logged too: the sum since the last point of the curve is not saved.
        if control.should_log and not control.should_training_stop:
            control.should_save |= self._due()
        return control

    def _due(self) -> bool:
        """Whether it is time to save by the clock of the main process."""
        due: bool
        (due,) = broadcast_object_list([time.monotonic() - self._saved >= self.checkpoint_seconds])
        return due

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start the clock anew."""
        self._saved = time.monotonic()
