"""What a recipe may say about the objective: the loss, and the adversary that makes it harder."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, field_validator, model_validator

from tombola.errors import UnknownName
from tombola.foundations.settings import Kind, Settings, checked


class LossSettings(Kind):
    """What every loss has: its name, and what it reads from the training data besides the labels."""

    needs_bias: ClassVar[bool] = False
    """Whether it reads a bias model's log-probabilities."""
    needs_teacher: ClassVar[bool] = False
    """Whether it reads a teacher's probabilities."""


class CrossEntropyLoss(LossSettings):
    """Settings of the plain loss."""

    kind: Literal["cross_entropy"] = "cross_entropy"
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="share of the target spread over all classes")


class DebiasingLoss(LossSettings):
    """What the losses against a known bias share: the bias model's strength over the training."""

    needs_bias: ClassVar[bool] = True

    anneal: tuple[float, float] = Field(
        (1.0, 1.0),
        description="exponent of the bias model's probabilities at the start and at the end of the training, "
        "linear in between; 1 leaves them, 0 makes them uniform",
    )

    @field_validator("anneal", mode="before")
    @classmethod
    def _two_exponents(cls, value: Any) -> Any:
        pair = isinstance(value, list | tuple) and len(value) == 2
        if not pair or not all(isinstance(part, int | float) and part >= 0 for part in value):
            raise ValueError(
                "takes two exponents from 0 on, at the start and at the end of the training, "
                f"e.g. [1, 0.8]; not {value!r}"
            )
        return value


class PoELoss(DebiasingLoss):
    """Settings of the product of experts."""

    kind: Literal["poe"] = "poe"


class ReweightingLoss(DebiasingLoss):
    """Settings of example reweighting."""

    kind: Literal["reweighting"] = "reweighting"


class ConfidenceLoss(DebiasingLoss):
    """Settings of confidence regularisation."""

    needs_teacher: ClassVar[bool] = True

    kind: Literal["confidence"] = "confidence"


_LOSSES = {
    str(loss.model_fields["kind"].default): loss
    for loss in (CrossEntropyLoss, PoELoss, ReweightingLoss, ConfidenceLoss)
}


def _find_loss(value: Any) -> Any:
    """The settings of the kind that is named, so that complaints are about its fields and no other's."""
    if isinstance(value, LossSettings):
        return value
    if not isinstance(value, dict) or "kind" not in value:
        raise ValueError(f"takes a mapping with a kind, one of {', '.join(_LOSSES)}; not {value!r}")
    kind = str(value["kind"])
    if kind not in _LOSSES:
        raise ValueError(str(UnknownName("loss", kind, _LOSSES)))
    return checked(_LOSSES[kind], value, "loss")


Loss = Annotated[
    CrossEntropyLoss | PoELoss | ReweightingLoss | ConfidenceLoss,
    Discriminator("kind"),
    BeforeValidator(_find_loss),
]
"""The settings of one loss, told apart by `kind`."""


class Adversary(Settings):
    """How word embeddings are perturbed while training. The defaults are Robust Tickets' for SST-2."""

    kind: Literal["freelb", "pgd"] = Field(
        "freelb", description="train on every step of the ascent, or on its end alone"
    )
    steps: int = Field(5, gt=0, description="forward passes of freelb, steps of ascent of pgd")
    step_size: float = Field(0.03, gt=0, description="length of one step of ascent in the norm")
    norm: Literal["l2", "linf"] = Field(
        "l2", description="over all tokens of an example, or over each number"
    )
    radius: float | None = Field(
        None, gt=0, description="of the ball that the perturbation stays in; null: it may go anywhere"
    )
    initial: float = Field(
        0.05,
        ge=0,
        description="size of the random perturbation that the ascent starts at: of each number in linf; in l2 this "
        "divided by the root of their count",
    )

    @model_validator(mode="before")
    @classmethod
    def _a_mapping(cls, value: Any) -> Any:
        if not isinstance(value, dict | Adversary):
            raise ValueError(
                f"takes a mapping, e.g. {{kind: freelb, steps: 5, step_size: 0.03}}, not {value!r}"
            )
        return value
