"""How often multi-task training samples each task."""

from typing import Literal, Self

from pydantic import Field, model_validator

from tombola.foundations.settings import Settings


class Sampling(Settings):
    """How often each task is sampled."""

    kind: Literal["proportional", "annealed", "uniform"] = Field(
        "proportional", description="in proportion to a task's size, to a power of it, or all tasks equally"
    )
    alpha: float = Field(0.5, ge=0, le=1, description="annealed: the exponent of the size")

    @model_validator(mode="after")
    def _check_alpha(self) -> Self:
        if self.alpha != type(self).model_fields["alpha"].default and self.kind != "annealed":
            raise ValueError(f"alpha: only works with kind: annealed, not {self.kind}")
        return self


PROPORTIONAL = Sampling()
