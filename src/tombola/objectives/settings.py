"""Registries of losses and adversaries, and the common parts of their settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from pydantic import Field, model_validator

from tombola.foundations.choices import Choice, tag_of
from tombola.foundations.registry import Registry

if TYPE_CHECKING:
    from tombola.objectives import LogitLoss, Objective

T = TypeVar("T")

HERE = "tombola.objectives"


@dataclass(frozen=True)
class RegisteredLoss:
    """A loss: its settings, and a function that builds the objective from them."""

    settings: type[LossSettings]
    build: Callable[[Any], LogitLoss]


@dataclass(frozen=True)
class RegisteredAdversary:
    """An adversary: its settings, and a function that wraps an objective according to them."""

    settings: type[Adversary]
    build: Callable[[Objective, Any], Objective]


losses: Registry[RegisteredLoss] = Registry(
    "loss", [f"{HERE}.{name}" for name in ("confidence", "cross_entropy", "poe", "reweighting")]
)
adversaries: Registry[RegisteredAdversary] = Registry(
    "adversary", [f"{HERE}.freelb", f"{HERE}.pgd", f"{HERE}.swaps", "tombola.attacks.in_the_loop"]
)


class LossSettings(Choice):
    """Settings common to all losses: the name, and what the loss reads from the training data besides the labels."""

    choices: ClassVar = losses

    needs_bias: ClassVar[bool] = False
    """Whether it reads a bias model's log-probabilities."""
    needs_teacher: ClassVar[bool] = False
    """Whether it reads a teacher's probabilities."""

    kind: str


class Adversary(Choice):
    """An adversary in training: perturbed word embeddings, replaced words, or attacks on the texts themselves."""

    choices: ClassVar = adversaries
    usual: ClassVar[str | None] = "freelb"

    kind: str

    @property
    def passes(self) -> int:
        """The passes of a training step over its batch, for estimates."""
        return 1


class Ascent(Adversary):
    """Perturbation of word embeddings during training. The defaults are Robust Tickets' for SST-2."""

    signed: ClassVar[bool] = False
    """Whether the ascent in the linf norm uses the signs of the gradient."""

    kind: str
    steps: int = Field(5, gt=0, description="steps of gradient ascent, with a forward pass each")
    step_size: float = Field(0.03, gt=0, description="length of a step in the norm")
    norm: Literal["l2", "linf"] = Field(
        "l2", description="norm of an example's perturbation, over all of its tokens"
    )
    radius: float | None = Field(None, gt=0, description="maximum norm of the perturbation; null: no limit")
    initial: float = Field(
        0.05,
        ge=0,
        description="size of the random perturbation at the start: that of each entry in linf; in l2 divided by the "
        "square root of the number of entries",
    )

    @model_validator(mode="after")
    def _check_initial(self) -> Self:
        if self.radius is not None and self.initial > self.radius:
            raise ValueError(
                f"initial: {self.initial:g} may start the perturbation beyond radius: {self.radius:g}; set it to at "
                "most the radius"
            )
        return self


def loss(settings: type[LossSettings]) -> Callable[[T], T]:
    """Register the decorated class as the objective of a loss, built from an instance of `settings`."""

    def register(build: T) -> T:
        losses(tag_of(settings))(RegisteredLoss(settings, build))  # type: ignore[arg-type]
        return build

    return register


def adversary(settings: type[Adversary]) -> Callable[[T], T]:
    """Register the decorated class as an adversary, built from the inner objective and the settings."""

    def register(build: T) -> T:
        adversaries(tag_of(settings))(RegisteredAdversary(settings, build))  # type: ignore[arg-type]
        return build

    return register
