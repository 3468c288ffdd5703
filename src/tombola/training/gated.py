"""One search for a mask: the scores of gates are trained on a task, the model's weights are not."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from torch import Tensor, distributed, nn
from torch.optim import Optimizer
from transformers import PreTrainedModel, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tombola.attacks.in_the_loop import IN_SEARCH, AttackAdversary
from tombola.errors import TombolaError
from tombola.foundations.hardware import Precision
from tombola.gates import Gating
from tombola.objectives import Objective
from tombola.training.course import Progress
from tombola.training.log import TrainLog
from tombola.training.loop import run_loop
from tombola.training.optimizers import optimizer_of
from tombola.training.settings import TrainSettings
from tombola.training.teaching import taught
from tombola.training.trainer import ObjectiveTrainer

if TYPE_CHECKING:
    from tombola.tasks import Collate, Encoded


SamplePer = Literal["pass", "step"]


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

    Gates are sampled anew for every pass that is differentiated, so that the passes of an adversary and accumulated
    batches average their noise; or once for an optimizer step. The passes of PGD's ascent, which give the scores no
    gradient, see the sample of the pass that they lead to. Only the scores are decayed, clipped, moved and saved:
    the gradients of gated weights are spent before.
    """

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
        self.gating.hold(model)
        self.per_pass = sample == "pass" and gating.gate.noisy
        self._step = -1
        self._samples = 0
        self._stale = True

    @property
    def trained(self) -> nn.Module:
        """The scores."""
        return self.gating

    def create_optimizer(self, model: nn.Module | None = None) -> Optimizer:
        """The optimizer of the recipe, over the scores."""
        kind, arguments = self.optimizer_cls_and_kwargs
        made: Optimizer = kind(self.gating.parameters(), weight_decay=self.args.weight_decay, **arguments)
        self.optimizer = made
        return made

    def training_step(
        self, model: nn.Module, inputs: dict[str, Tensor], num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Sample the gates before the step's first pass; turn gradients into those of the scores after its last."""
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
        """Take the gradient of one pass; the next one may have gates of its own."""
        super().backward(loss)
        if self.per_pass:
            self.gating.gather()
            self._stale = True

    def train(self, *arguments: Any, **options: Any) -> Any:
        """Train, sampling gates before the passes that need new ones."""
        hook = self.model.register_forward_pre_hook(self._sample)
        try:
            return super().train(*arguments, **options)
        finally:
            hook.remove()

    def _sample(self, model: nn.Module, inputs: Any) -> None:
        if self._stale:
            self.gating.sample(self._step, self._samples)
            self._samples, self._stale = self._samples + 1, False

    def _average_over_processes(self) -> None:
        """Average what was gathered from accumulated batches, whose gradients processes do not exchange."""
        if self.per_pass and self.args.gradient_accumulation_steps > 1 and self.args.world_size > 1:
            for score in self.gating.scores:
                assert score.grad is not None
                distributed.all_reduce(score.grad)
                score.grad.div_(self.args.world_size)

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
    sample: SamplePer = "pass",
    objective: Objective | None = None,
    teacher: PreTrainedModel | None = None,
    stop_at: float | None = None,
    progress: Progress | None = None,
) -> GateLog:
    """Train the scores of `gating` in place, going on from the last checkpoint in `folder`.

    The model is left bit for bit as it was. Equal arguments give bit-equal scores on one machine, whether the
    search was killed in between or not. What is not said here is as in `run_loop`.

    Args:
        gating: The gates.
        sample: Sample noisy gates for every pass (as Robust Tickets released), or once for an optimizer step.
        teacher: What `settings.distill` learns from.
    """
    if isinstance(settings.adversary, AttackAdversary):
        raise TombolaError(IN_SEARCH)
    lesson = taught(
        model, settings, teacher, seed=seed, precision=precision, pad_id=collate.pad_id, projects=False
    )
    try:
        with lesson as (usual, ask_teacher):
            return run_loop(
                model,
                data,
                settings,
                collate=collate,
                seed=seed,
                precision=precision,
                folder=folder,
                trainer=partial(GateTrainer, gating=gating, sample=sample),
                objective=ask_teacher(objective or usual),
                optimizer=optimizer_of(settings),
                identity={**_gates(gating), "sample": sample, "stop_at": stop_at},
                log=GateLog,
                callbacks=[_Settle(gating)],
                stop_at=stop_at,
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
