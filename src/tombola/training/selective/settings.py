"""The settings of selective updates. (ROSE, §3)"""

from typing import Literal, Self

from pydantic import Field, model_validator

from tombola.foundations.settings import Settings

SelectionKind = Literal["first", "second", "ensemble", "random"]


class Selection(Settings):
    """Which weights of the encoder's layers an AdamW step updates; the rest stay unchanged.

    `first` measures how sensitive a weight is to another dropout mask, `second` how far its gradient departs from its
    momentum, and `ensemble` combines both. `random` freezes the same number at random, as a control.
    """

    kind: SelectionKind = Field(description="risk by which weights are selected")
    upper: float = Field(
        default=100.0, ge=0, le=100, description="risk percentile above which weights stay frozen"
    )
    lower: float = Field(
        default=0.0, ge=0, le=100, description="risk percentile below which weights stay frozen"
    )
    gamma: float = Field(default=0.5, ge=0, le=1, description="ensemble: share of `first`")
    elementwise: bool = Field(
        default=False, description="select single weights within each tensor, not whole tensors"
    )
    every: int = Field(
        default=1,
        gt=0,
        description="first, ensemble, random: steps between selections by dropout or at random",
    )

    @property
    def two_passes(self) -> bool:
        """Whether a step needs predictions from two dropout passes."""
        return self.kind in ("first", "ensemble")

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.lower > self.upper:
            raise ValueError(f"lower: must be at most `upper` ({self.upper:g}), not {self.lower:g}")
        return self

    @model_validator(mode="after")
    def _of_its_kind(self) -> Self:
        if self.gamma != type(self).model_fields["gamma"].default and self.kind != "ensemble":
            raise ValueError(f"gamma: only works with kind: ensemble, not {self.kind}")
        if self.every > 1 and self.kind == "second":
            raise ValueError("every: second makes a new selection in every step; leave it out")
        return self
