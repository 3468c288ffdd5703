"""How often multi-task training samples each task."""

from typing import Literal

from pydantic import Field

from tombola.foundations.settings import Settings


class Sampling(Settings):
    """How often each task is sampled."""

    kind: Literal["proportional", "annealed", "uniform"] = Field(
        "proportional", description="by size, by a power of it, or all alike"
    )
    alpha: float = Field(0.5, ge=0, le=1, description="annealed: the power of its size that a task is given")


PROPORTIONAL = Sampling()
