"""The L0 term: a price on open gates that is the same for all. (Louizos et al. 2018; Robust Tickets, §3.2)"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tombola.gates.base import Budget, budgets

if TYPE_CHECKING:
    from torch import Tensor


@budgets.register
class L0(Budget):
    """λ·R, with R the mean openness over all units; any sparsity can be drawn from the scores afterwards.

    The released code takes the mean over matrices of their means, and counts the entries of a dictionary
    where the schedule of λ counts steps.
    """

    knows_sparsity: ClassVar[bool] = False

    kind: Literal["l0"] = "l0"
    weight: float = Field(0.5, ge=0, description="λ once it is fully there")
    begin: float = Field(0.1, ge=0, le=1, description="share of the steps before which λ is 0")
    full: float = Field(
        0.4, ge=0, le=1, description="share of the steps from which λ is whole; linear between"
    )

    @model_validator(mode="after")
    def _begins_before_it_is_full(self) -> Self:
        if self.begin > self.full:
            raise ValueError(f"begin: {self.begin} comes after full: {self.full}")
        return self

    def weight_at(self, share: float) -> float:
        """λ when a share of the search is done."""
        if share >= self.full:
            return self.weight
        return self.weight * max(0.0, share - self.begin) / (self.full - self.begin)

    def pressure(
        self, share: float, target: float, openness: Callable[[], float], multipliers: Tensor
    ) -> float:
        """λ."""
        return self.weight_at(share)
