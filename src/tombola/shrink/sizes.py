"""How large and how fast a model is, in numbers."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict


class Sizes(BaseModel):
    """A model's size and speed.

    Latencies belong to one session of one process: compare models by their `Speedup`, never by the latencies of two
    sessions, which met the machine at two moments.

    Args:
        parameters: Numbers in the model.
        flops: Floating-point operations of a forward pass of one text of `length` tokens.
        bytes: Size of the weights.
        length: Tokens of a text; the mean where texts differ.
        latency: Median seconds of a forward pass, by batch size.
        texts: What the model was timed on.
        threads: Threads of the session.
        device: Device of the session.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    parameters: int
    flops: int
    bytes: int
    length: int
    latency: dict[int, float]
    texts: str
    threads: int
    device: str


class Speedup(BaseModel):
    """How many times faster a model is than another that took turns with it on the same batches.

    Args:
        ratio: Median over rounds of the other's time divided by the model's.
        low: Lower end of the median's 95 % confidence interval.
        high: Upper end of the interval.
        busy: Why the ratio is less certain than usual: the machine was busy, or there was time for few rounds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    ratio: float
    low: float
    high: float
    busy: str | None = None


class Row(BaseModel):
    """One line of a comparison. Times carry the speed-up that was measured in turns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    what: str
    before: float
    after: float
    unit: str = ""
    speedup: Speedup | None = None

    @property
    def ratio(self) -> float:
        """How many times smaller or faster: for times the median over rounds, not the quotient of two medians."""
        return self.speedup.ratio if self.speedup else self.before / self.after

    @property
    def low(self) -> float | None:
        """Lower end of the ratio's interval, where it was measured."""
        return self.speedup.low if self.speedup else None

    @property
    def high(self) -> float | None:
        """Upper end of the ratio's interval, where it was measured."""
        return self.speedup.high if self.speedup else None


def compare(before: Sizes, after: Sizes, speedup: Mapping[int, Speedup]) -> list[Row]:
    """Each size before and after, with the speed-up at each batch size.

    Args:
        before: The larger model.
        after: The smaller model, measured in the same session.
        speedup: The speed-up of the smaller model, by batch size.
    """
    return [
        Row(what="parameters", before=before.parameters, after=after.parameters),
        Row(what=f"FLOPs per text of {before.length} tokens", before=before.flops, after=after.flops),
        Row(what="size on disk", before=before.bytes, after=after.bytes, unit="B"),
        *(
            Row(
                what=f"time of a batch of {batch}",
                before=before.latency[batch],
                after=after.latency[batch],
                unit="s",
                speedup=found,
            )
            for batch, found in speedup.items()
        ),
    ]
