"""One search for a mask: the scores of gates are trained on a task, the model's weights are not."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from torch import Tensor, nn
from torch.optim import Optimizer
from transformers import PreTrainedModel, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tombola.foundations.hardware import Precision
from tombola.gates import Gating
from tombola.objectives import Objective
from tombola.objectives.building import objective_of
from tombola.training.course import Progress
from tombola.training.log import TrainLog
from tombola.training.loop import run_loop
from tombola.training.optimizers import optimizer_of
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

    @classmethod
    def of(cls, history: list[dict[str, Any]], **figures: Any) -> Self:
        """The log of a finished search, with the sparsities that were noted beside the losses."""
        noted = [Openness(entry["step"], entry["sparsity"]) for entry in history if "sparsity" in entry]
        return super().of(history, sparsities=noted, **figures)


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

    @property
    def trained(self) -> nn.Module:
        """The scores."""
        return self.gating

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

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Note how many gates are shut beside every loss; the Trainer keeps it over a resumption."""
        if "loss" in logs:
            logs = {**logs, "sparsity": 1.0 - self.gating.openness()}
        super().log(logs, start_time)


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
    search was killed in between or not. What is not said here is as in `run_loop`.
    """
    try:
        return run_loop(
            model,
            data,
            settings,
            collate=collate,
            seed=seed,
            precision=precision,
            folder=folder,
            trainer=partial(GateTrainer, gating=gating),
            objective=objective or objective_of(settings.loss, settings.adversary, settings.r_drop),
            optimizer=optimizer_of(settings),
            identity=_gates(gating),
            log=GateLog,
            callbacks=[_Settle(gating)],
            progress=progress,
        )
    finally:
        gating.release()


def _gates(gating: Gating) -> Mapping[str, Any]:
    """What a checkpoint of a search must agree with besides."""
    return {
        "gate": gating.gate.canonical(),
        "budget": gating.budget.canonical(),
        "units": gating.units.granularity,
        "sparsity": gating.sparsity,
        "scope": gating.scope,
    }
