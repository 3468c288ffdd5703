"""One search for a mask: the scores of gates are trained on a task, the model's weights are not."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from accelerate.utils import gather_object
from torch import Tensor, nn
from torch.optim import Optimizer
from transformers import PreTrainedModel, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import PrinterCallback

from tombola.foundations.hardware import Precision
from tombola.foundations.quiet import quiet
from tombola.gates import Gating
from tombola.objectives import Objective
from tombola.objectives.building import objective_of
from tombola.training.batches import ShuffledBatches
from tombola.training.checkpoints import Checkpoints, restore_model, saved_seconds, step_of
from tombola.training.clipping import clip
from tombola.training.course import Course, Progress
from tombola.training.dropout import dropout_of
from tombola.training.log import TrainLog, curve, logging_interval
from tombola.training.optimizers import optimizer_of
from tombola.training.run import arguments_of, identity_of, lent
from tombola.training.schedule import total_steps
from tombola.training.seeding import rng_state
from tombola.training.settings import TrainSettings
from tombola.training.trainer import ObjectiveTrainer

if TYPE_CHECKING:
    from tombola.tasks import Collate, Encoded


class Openness(NamedTuple):
    """The share of units expected to be shut after a step."""

    step: int
    sparsity: float


class GateLog(TrainLog, frozen=True):
    """The course of a search: that of its training, and how many gates were shut on the way."""

    sparsities: list[Openness]


class GateTrainer(ObjectiveTrainer):
    """Trains the scores of gates in place of a model's weights.

    Gates are sampled once for an optimizer step, whatever number of passes and accumulated batches it takes.
    Only the scores are decayed, clipped, moved and saved: the gradients of gated weights are spent before.
    """

    def __init__(
        self, model: PreTrainedModel, args: TrainingArguments, *, gating: Gating, **kwargs: Any
    ) -> None:
        super().__init__(model, args, **kwargs)
        self.gating = gating
        self.gating.hold(model)
        self._sampled_for = -1

    def create_optimizer(self, model: nn.Module | None = None) -> Optimizer:
        """The optimizer of the recipe, over the scores."""
        kind, arguments = self.optimizer_cls_and_kwargs
        self.optimizer = kind(self.gating.parameters(), weight_decay=self.args.weight_decay, **arguments)
        return self.optimizer

    def training_step(
        self, model: nn.Module, inputs: dict[str, Tensor], num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Sample the gates before the step's first batch; turn gradients into those of the scores after its last."""
        step = self.state.global_step
        if self._sampled_for != step:
            self.gating.sample(step)
            self._sampled_for = step
        loss = super().training_step(model, inputs, num_items_in_batch)
        if self.accelerator.sync_gradients:
            self.gating.collect(step / self.state.max_steps)
        return loss

    def _clip_grad_norm(self, model: nn.Module) -> Any:
        self.accelerator.unscale_gradients()
        return clip(self.gating.parameters(), self.args.max_grad_norm)

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        return super()._get_grad_norm(self.gating, grad_norm)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Note how many gates are shut beside every loss; the Trainer keeps it over a resumption."""
        if "loss" in logs:
            logs = {**logs, "sparsity": 1.0 - self.gating.openness()}
        super().log(logs, start_time)

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        rng = gather_object([rng_state()])
        if self.args.should_save:
            self.checkpoints.write(
                self.gating, self.optimizer, self.lr_scheduler, self.state, rng, seconds=self.seconds
            )

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        restore_model(Path(resume_from_checkpoint), self.gating)
        self.seconds_before = saved_seconds(Path(resume_from_checkpoint))


class _Settle(TrainerCallback):
    """Lets the budget restore its count before anything is logged or saved."""

    def __init__(self, gating: Gating) -> None:
        self.gating = gating

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.gating.settle(state.global_step, state.max_steps)


def train_gates(
    model: PreTrainedModel,
    data: "Encoded",
    settings: TrainSettings,
    gating: Gating,
    *,
    collate: "Collate",
    seed: int,
    precision: Precision,
    folder: Path,
    objective: Objective | None = None,
    progress: Progress | None = None,
) -> GateLog:
    """Train the scores of `gating` in place, going on from the last checkpoint in `folder`.

    The model is left bit for bit as it was. Equal arguments give bit-equal scores on one machine, whether the
    search was killed in between or not.
    """
    batches = ShuffledBatches(data.lengths, settings.batch_size, seed, settings.group_by_length)
    run = {**identity_of(settings, data, None), **_gates(gating), "seed": seed, "precision": precision}
    checkpoints = Checkpoints(folder / "checkpoints", run)
    resumed = checkpoints.last()
    course = Course(batches, collate, settings.checkpoint_minutes, progress=progress)
    with quiet(), lent(model, collate.pad_id), dropout_of(model, settings.dropout):
        arguments = arguments_of(settings, seed, precision, folder)
        arguments._n_gpu = min(arguments.n_gpu, 1)
        arguments.max_steps = total_steps(settings, len(batches), arguments.world_size)
        arguments.logging_steps = logging_interval(arguments.max_steps)
        trainer = GateTrainer(
            model,
            arguments,
            gating=gating,
            objective=objective or objective_of(settings.loss, settings.adversary, settings.r_drop),
            batches=batches,
            checkpoints=checkpoints,
            train_dataset=data,
            data_collator=collate,
            optimizer_cls_and_kwargs=optimizer_of(settings),
            callbacks=[_Settle(gating), course],
        )
        trainer.remove_callback(PrinterCallback)
        try:
            trainer.train(resume_from_checkpoint=str(resumed) if resumed else None)
        finally:
            gating.release()
    history = trainer.state.log_history
    return GateLog(
        steps=trainer.state.global_step,
        epochs=trainer.state.epoch,
        precision=precision,
        curve=curve(history),
        seconds=trainer.seconds,
        examples_per_second=trainer.examples / (trainer.seconds - trainer.seconds_before),
        resumed_from=step_of(resumed) if resumed else None,
        sparsities=[Openness(entry["step"], entry["sparsity"]) for entry in history if "sparsity" in entry],
    )


def _gates(gating: Gating) -> Mapping[str, Any]:
    """What a checkpoint of a search must agree with besides."""
    return {
        "gate": gating.gate.canonical(),
        "budget": gating.budget.canonical(),
        "units": gating.units.granularity,
        "sparsity": gating.sparsity,
        "scope": gating.scope,
    }
