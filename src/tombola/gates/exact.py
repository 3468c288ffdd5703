"""An exact count: the cut is placed so that the exact number of scores lie below it. (SRNets, §3.2 and §4.5)"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from tombola.gates.base import Budget, budgets


@budgets.register
class Exact(Budget):
    """An exact fraction of shut gates, fixed or on a schedule, restored at every reset of the cut.

    Between resets scores may cross the cut. The last reset follows the last step, at the requested sparsity; the
    released code saves the mask of the initial sparsity instead.
    """

    kind: Literal["exact"] = "exact"
    schedule: Literal["fixed", "cubic", "stepwise"] = Field(
        "fixed",
        description="fixed: the requested sparsity throughout; cubic, stepwise: a gradual rise from `initial`",
    )
    initial: float = Field(0.0, ge=0, lt=1, description="initial sparsity of a gradual schedule")
    stairs: int = Field(5, gt=0, description="number of equal steps of the stepwise schedule")
    reset_every: int = Field(500, gt=0, description="optimizer steps between resets of the cut")

    @model_validator(mode="after")
    def _of_its_schedule(self) -> Self:
        if self.initial and self.schedule == "fixed":
            raise ValueError(
                "initial: only works with schedule: cubic or stepwise, not fixed; set one of them, or leave it out"
            )
        if self.stairs != type(self).model_fields["stairs"].default and self.schedule != "stepwise":
            raise ValueError(f"stairs: only works with schedule: stepwise, not {self.schedule}")
        return self

    def count_at(self, share: float, target: float) -> float:
        """Return the target; or s_f + (s_0 − s_f)(1 − t/T)³; or `stairs` equal steps at equal intervals."""
        match self.schedule:
            case "fixed":
                return target
            case "cubic":
                return target + (self.initial - target) * (1 - share) ** 3
            case "stepwise":
                stair = min(int(share * (self.stairs + 1) + 1e-9), self.stairs)
                return self.initial + (target - self.initial) * stair / self.stairs

    def resets_after(self, step: int) -> bool:
        """Reset after every `reset_every` steps."""
        return step % self.reset_every == 0
