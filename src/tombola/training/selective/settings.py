"""What a recipe may say about selective updates. (ROSE, §3)"""

from typing import Literal, Self

from pydantic import Field, model_validator

from tombola.foundations.settings import Settings

SelectionKind = Literal["first", "second", "ensemble", "random"]


class Selection(Settings):
    """Which weights of the encoder's layers one step of AdamW updates; the rest stay as they are.

    `first` asks how much a weight answers to another draw of dropout, `second` how far its gradient leaves
    its momentum, `ensemble` mixes both. `random` freezes as many by lot: the control of the choice.
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
        """Whether a step needs the predictions under two draws of dropout."""
        return self.kind in ("first", "ensemble")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.lower > self.upper:
            raise ValueError(f"lower: takes at most `upper` ({self.upper:g}), not {self.lower:g}")
        return self
