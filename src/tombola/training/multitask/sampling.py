"""How often multi-task training samples each task."""

from typing import Literal

from pydantic import Field

from tombola.foundations.settings import Settings


class Sampling(Settings):
    """How often each task is sampled."""

    kind: Literal["proportional", "annealed", "uniform"] = Field(
        "proportional", description="in proportion to a task's size, to a power of it, or all tasks equally"
    )
    alpha: float = Field(0.5, ge=0, le=1, description="annealed: the exponent of the size")


PROPORTIONAL = Sampling()
