"""Learned masks: train gate scores on the task, and remove the lowest. (Robust Tickets; SRNets)"""

from typing import Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from tombola.attacks.in_the_loop import IN_SEARCH, AttackAdversary
from tombola.gates import Budget, Gate, HardConcrete
from tombola.search import Found, SearchSettings, StageBuilder, check_start, plan
from tombola.tasks.mixing import Mixed
from tombola.training.settings import TrainSettings

IMPORTANCE_BATCHES = 16
"""Training batches over which importance is averaged if it sets the initial scores."""


class Learned(SearchSettings):
    """Settings of a learned mask: any gate, any budget, any units, any loss, from any weights."""

    method: Literal["learned"] = "learned"
    gate: Gate = Field(HardConcrete(), description="how a score turns into a factor on the unit's weights")
    budget: Budget | None = Field(
        None, description="how sparsity is enforced; by default exact for threshold gates, l0 for others"
    )
    start: Literal["pretrained", "finetuned"] = Field(
        "finetuned",
        description="weights under the gates, which the search changes only with `weights: true`",
    )
    start_step: int | None = Field(
        None, gt=0, description="start: finetuned: use the checkpoint after this step of the fine-tuning"
    )
    start_share: float | None = Field(
        None, gt=0, lt=1, description="the same, as a share of the fine-tuning's steps (timing studies)"
    )
    init: Literal["importance"] | None = Field(
        None,
        description="importance: order the initial scores by the units' Taylor importance per weight, over "
        f"{IMPORTANCE_BATCHES} batches, with as many gates open as without it; by default set by the gate's `initial`",
    )
    weights: bool = Field(
        False,
        description="train the weights and the gates together, in one optimizer (L0, CoFi); the trained weights are "
        "the ticket's with `retrain: null`, and the start of retraining with `retrain.start: searched`",
    )
    weights_learning_rate: float | None = Field(
        None,
        gt=0,
        description="weights: peak learning rate of the weights, on the schedule of `train`, whose learning_rate is "
        "that of the scores; by default the recipe's train.learning_rate",
    )
    mix: tuple[Mixed, ...] = Field(
        (), description="other data added to the search alone, e.g. {on: hans/train}"
    )
    sample: Literal["pass", "step"] = Field(
        "pass",
        description="sample noisy gates for every forward and backward pass, as in Robust Tickets' code, so that an "
        "adversary's passes average the noise; or once per optimizer step",
    )
    draw_epoch: int | None = Field(
        None,
        gt=0,
        description="draw from the scores after this epoch of the search; by default the last",
    )
    train: TrainSettings = Field(
        TrainSettings(),
        description="training of the scores, or of scores and weights; unset keys are as published for the gate",
    )

    @model_validator(mode="before")
    @classmethod
    def _inherit_published_training(cls, raw: Any) -> Any:
        gate, train = raw.get("gate"), raw.get("train") or {}
        if gate is None:
            chosen: Any = HardConcrete
        else:
            chosen = gate if isinstance(gate, Gate) else Gate.meant_by(gate)
        if isinstance(train, dict) and chosen is not None:
            return {**raw, "train": {**chosen.published, **train}}
        return raw

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_start(self.start, self.start_step, self.start_share)
        if self.train.epochs == 0 and self.train.steps is None:
            raise ValueError("train.epochs: must be more than 0, since the scores must be trained")
        if isinstance(self.train.adversary, AttackAdversary) and not self.weights:
            raise ValueError(IN_SEARCH)
        if self.weights_learning_rate is not None and not self.weights:
            raise ValueError(
                "weights_learning_rate: the weights are frozen; add weights: true, or leave it out"
            )
        if self.init is not None and getattr(self.gate, "initial", None) == "random":
            raise ValueError(
                "init: importance orders the scores, but gate.initial: random shuffles them; remove one of them"
            )
        if self.sample == "step" and not self.gate.noisy:
            raise ValueError(f"sample: {self.gate.kind} gates have no noise to sample; leave it out")
        if self.draw_epoch is not None and self.train.steps is not None:
            raise ValueError(
                "draw_epoch: counts epochs, but the training is set in steps; set train.epochs instead of train.steps"
            )
        if self.draw_epoch is not None and self.draw_epoch > self.train.epochs:
            raise ValueError(
                f"draw_epoch: {self.draw_epoch} is beyond the end of the search, which takes {self.train.epochs:g} "
                "epochs (train.epochs): use an earlier epoch, or search longer"
            )
        if self.train.select is not None:
            raise ValueError(
                "train.select: only works in trainings without gates; leave it out of the search"
            )
        return self

    @property
    def starts_at(self) -> float | None:
        """The step of the fine-tuning whose weights are gated."""
        return self.start_step or self.start_share

    @property
    def stops_at(self) -> float | None:
        """The fraction of the search's steps after which masks are drawn; None for the end."""
        if self.draw_epoch is None or self.draw_epoch == self.train.epochs:
            return None
        return self.draw_epoch / self.train.epochs

    @property
    def changes_weights(self) -> bool:
        """Whether the gated weights are trained too."""
        return self.weights

    @property
    def effective_budget(self) -> Budget:
        """The budget, by default the one that the gate was published with."""
        return self.budget or Budget(kind=self.gate.usual_budget)

    def canonical(self) -> dict[str, Any]:
        """Return the settings that enter a stage's hash, without those that do not affect the result."""
        return {**super().canonical(), "train": {**self._published(), **self.train.canonical()}}

    @model_serializer(mode="wrap")
    def _with_tag(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Also write the published training settings: they depend on the gate, so they are not plain defaults."""
        written = {"method": self.method, **fields(self)}
        return {**written, "train": {**self._published(), **written.get("train", {})}}

    def _published(self) -> dict[str, Any]:
        return {name: getattr(self.train, name) for name in self.gate.published}


@plan(Learned)
def learned(settings: Learned, builder: StageBuilder, sparsity: float) -> Found:
    """Learn which units the task needs, by gradient descent on their gates and optionally on their weights."""
    start = None
    if settings.start == "finetuned":
        start = builder.train(stop_at=settings.starts_at)
    search = builder.learn(settings, sparsity if settings.effective_budget.knows_sparsity else None, start)
    trained = search if settings.weights else start
    return Found(builder.draw(settings, sparsity, scores=search), trained=trained)
