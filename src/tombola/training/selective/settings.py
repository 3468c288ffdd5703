"""The settings of selective updates. (ROSE, §3)"""

from typing import Literal, Self

from pydantic import Field, model_validator

from tombola.foundations.settings import Settings

SelectionKind = Literal["first", "second", "ensemble", "random"]


class Selection(Settings):
    """Which weights of the encoder's layers an AdamW step updates; the rest stay unchanged.

    `first` measures how sensitive a weight is to another dropout mask, `second` how far its gradient departs from its
    momentum, and `ensemble` mixes both. `random` freezes as many at random, as a control.
    """

    kind: SelectionKind = Field(description="the risk by which weights are chosen")
    upper: float = Field(100.0, ge=0, le=100, description="percentile of the risk above which none updates")
    lower: float = Field(0.0, ge=0, le=100, description="percentile of the risk below which none updates")
    gamma: float = Field(0.5, ge=0, le=1, description="share of `first` in `ensemble`")
    elementwise: bool = Field(
        False, description="choose single weights within each tensor, not whole tensors"
    )
    every: int = Field(1, gt=0, description="steps between two choices of `first` or `random`")

    @property
    def two_passes(self) -> bool:
        """Whether a step needs predictions from two dropout passes."""
        return self.kind in ("first", "ensemble")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.lower > self.upper:
            raise ValueError(f"lower: takes at most `upper` ({self.upper:g}), not {self.lower:g}")
        return self
