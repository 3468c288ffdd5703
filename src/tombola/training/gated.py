"""Mask search by gradient descent: train gate scores on a task, alone or together with the model's weights."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import torch
from torch import Tensor, distributed, nn
from torch.optim import Optimizer
from transformers import PreTrainedModel, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tombola.attacks.in_the_loop import IN_SEARCH, AttackAdversary
from tombola.errors import TombolaError
from tombola.foundations.hardware import Precision
from tombola.gates import Gating
from tombola.objectives import Objective
from tombola.training.attacked import attacking
from tombola.training.course import Progress
from tombola.training.log import TrainLog
from tombola.training.loop import TrainingRun, run_loop
from tombola.training.optimizers import optimizer_of
from tombola.training.settings import TrainSettings
from tombola.training.teaching import taught
from tombola.training.trainer import ObjectiveTrainer

if TYPE_CHECKING:
    from tombola.tasks import Collate, Encoded


SamplePer = Literal["pass", "step"]


class Openness(NamedTuple):
    """The expected fraction of shut units after a step."""

    step: int
    sparsity: float


class GateLog(TrainLog, frozen=True):
    """The log of a search: that of its training, and the fraction of shut gates over time."""

    sparsities: list[Openness]

    @classmethod
    def of(cls, history: list[dict[str, Any]], **figures: Any) -> Self:
        """Build the log of a finished search, with the sparsities recorded with the losses."""
        noted = [Openness(entry["step"], entry["sparsity"]) for entry in history if "sparsity" in entry]
        return super().of(history, sparsities=noted, **figures)


class GateTrainer(ObjectiveTrainer):
    """Trains gate scores instead of a model's weights.

    Gates are sampled anew for every differentiated pass, so that the passes of an adversary and accumulated batches
    average the noise; or once per optimizer step. The ascent passes of PGD, which give the scores no gradient, use
    the sample of the pass that they lead to. Only the scores are decayed, clipped, updated and saved: the gradients
    of gated weights are consumed before.
    """

    trains_weights: ClassVar[bool] = False

    def __init__(
        self,
        model: PreTrainedModel,
        args: TrainingArguments,
        *,
        gating: Gating,
        sample: SamplePer = "pass",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, args, **kwargs)
        self.gating = gating
        self.gating.hold(model, self.trains_weights)
        if args.world_size > 1:  # the initial scores of processes may differ in the last bits
            for state in (*gating.scores, gating.cuts):
                distributed.broadcast(state.detach(), src=0)
        self.per_pass = sample == "pass" and gating.gate.noisy
        self._step = -1
        self._samples = 0
        self._stale = True

    @property
    def trained(self) -> nn.Module:
        """The scores."""
        return self.gating

    def create_optimizer(self, model: nn.Module | None = None) -> Optimizer:
        """Create the recipe's optimizer over the scores."""
        kind, arguments = self.optimizer_cls_and_kwargs
        optimizer: Optimizer = kind(
            self.gating.parameters(), weight_decay=self.args.weight_decay, **arguments
        )
        self.optimizer = optimizer
        return optimizer

    def training_step(
        self, model: nn.Module, inputs: dict[str, Tensor], num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Prepare new gate samples for a new step, and collect the scores' gradients after its last pass."""
        if self._step != self.state.global_step:
            self._step, self._samples, self._stale = self.state.global_step, 0, True
            self.gating.zero_grad()
        loss = super().training_step(model, inputs, num_items_in_batch)
        if self.accelerator.sync_gradients:
            self._average_over_processes()
            scaler = self.accelerator.scaler
            scale = scaler.get_scale() if scaler is not None else 1.0
            self.gating.collect(self._step / self.state.max_steps, scale)
        return loss

    def backward(self, loss: Tensor) -> None:
        """Backpropagate one pass; the next may use a new gate sample."""
        super().backward(loss)
        if self.per_pass:
            self.gating.gather()
            self._stale = True

    def train(self, *arguments: Any, **options: Any) -> Any:
        """Train, sampling gates before the passes that need a new sample."""
        hook = self.model.register_forward_pre_hook(self._sample)
        try:
            return super().train(*arguments, **options)
        finally:
            hook.remove()

    def _sample(self, model: nn.Module, inputs: Any) -> None:
        if self._stale and model.training:
            self.gating.sample(self._step, self._samples)
            self._samples, self._stale = self._samples + 1, False

    def _average_over_processes(self) -> None:
        """Average the gradients of accumulated batches, which processes do not exchange."""
        if self.per_pass and self.args.gradient_accumulation_steps > 1 and self.args.world_size > 1:
            for gradient in self.gating.gathered():
                distributed.all_reduce(gradient)
                gradient.div_(self.args.world_size)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log the fraction of shut gates with every loss; the Trainer's state keeps it across resumptions."""
        if "loss" in logs:
            logs = {**logs, "sparsity": 1.0 - self.gating.openness()}
        super().log(logs, start_time)


class JointTrainer(GateTrainer):
    """Trains a model's weights together with the scores of their gates, as L0 and CoFi do.

    A pass with the factors m gives the weights the gradient dL/d(W ⊙ m) ⊙ m. One optimizer updates both, with two
    learning rates on one schedule. Their gradients are clipped separately, since their sizes are unrelated, and
    biases and norms are not decayed. Checkpoints hold the weights, the scores and the moments of both.
    """

    trains_weights: ClassVar[bool] = True

    def __init__(
        self, model: PreTrainedModel, args: TrainingArguments, *, weights_learning_rate: float, **kwargs: Any
    ) -> None:
        super().__init__(model, args, **kwargs)
        self.weights_learning_rate = weights_learning_rate

    @property
    def trained(self) -> nn.Module:
        """The scores and the model."""
        return nn.ModuleDict({"gates": self.gating, "model": self.model})

    def create_optimizer(self, model: nn.Module | None = None) -> Optimizer:
        """Create the recipe's optimizer over the weights, as in any training, and over the scores."""
        optimizer: Optimizer = ObjectiveTrainer.create_optimizer(self, model)
        for group in optimizer.param_groups:
            group["lr"] = self.weights_learning_rate
        scores = list(self.gating.parameters())
        optimizer.add_param_group({"params": scores, "weight_decay": self.args.weight_decay})
        return optimizer

    def _clip_grad_norm(self, model: nn.Module) -> Any:
        self.accelerator.unscale_gradients()
        parts = (self.gating, self.model)
        norms = [self.clip(part.parameters(), self.args.max_grad_norm) for part in parts]
        return torch.linalg.vector_norm(torch.stack(norms))


class _Settle(TrainerCallback):
    """Restores the budget's count before anything is logged or saved."""

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
    sample: SamplePer = "pass",
    weights_learning_rate: float | None = None,
    objective: Objective | None = None,
    teacher: PreTrainedModel | None = None,
    stop_at: float | None = None,
    progress: Progress | None = None,
) -> GateLog:
    """Train the scores of `gating` in place, resuming from the last checkpoint in `folder`.

    The model stays bit-equal unless its weights are trained too. On one machine, equal arguments give bit-equal
    scores and weights, whether or not the search was interrupted. The other arguments are as in `TrainingRun`.

    Args:
        gating: The gates.
        sample: Sample noisy gates for every pass (as in Robust Tickets' release), or once per optimizer step.
        weights_learning_rate: The peak learning rate of the model's weights, trained together with the scores; None
            freezes them.
        teacher: The teacher for `settings.distill`.
    """
    frozen = weights_learning_rate is None
    if isinstance(settings.adversary, AttackAdversary) and frozen:
        raise TombolaError(IN_SEARCH)
    trainer: Callable[..., GateTrainer] = GateTrainer
    if weights_learning_rate is not None:
        trainer = partial(JointTrainer, weights_learning_rate=weights_learning_rate)
    run = TrainingRun(data, settings, collate, seed, precision, folder, stop_at, progress)
    try:
        with taught(model, run, teacher, projects=not frozen) as (usual, ask_teacher):
            return run_loop(
                model,
                run,
                trainer=partial(trainer, gating=gating, sample=sample),
                objective=ask_teacher(objective or usual),
                optimizer=optimizer_of(settings),
                identity={
                    **_gates(gating),
                    "sample": sample,
                    "weights_learning_rate": weights_learning_rate,
                },
                log=GateLog,
                callbacks=[_Settle(gating), *attacking(run, as_trained=gating.shown)],
            )
    finally:
        gating.release()


def _gates(gating: Gating) -> Mapping[str, Any]:
    """Return what else must match for a search to resume from a checkpoint."""
    return {
        "gate": gating.gate.canonical(),
        "budget": gating.budget.canonical(),
        "units": gating.units.granularity,
        "sparsity": gating.sparsity,
        "scope": gating.scope,
        "pattern": gating.pattern,
    }
