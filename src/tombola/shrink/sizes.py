"""How large and how fast a model is, in numbers."""

from pydantic import BaseModel, ConfigDict


class Sizes(BaseModel):
    """A model's size and speed. FLOPs are of one text; latency is the median in seconds, by batch size."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    parameters: int
    flops: int
    bytes: int
    length: int
    latency: dict[int, float]


class Row(BaseModel):
    """One line of a comparison."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    what: str
    before: float
    after: float
    unit: str = ""

    @property
    def ratio(self) -> float:
        """How many times smaller or faster."""
        return self.before / self.after
