"""The size and speed of a model in numbers."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict


class Sizes(BaseModel):
    """A model's size and speed.

    Latencies are comparable only within one session of one process: compare models by their `Speedup`, because the
    load of the machine may differ between sessions.

    Args:
        parameters: The number of parameters.
        flops: Floating-point operations of a forward pass on one text of `length` tokens.
        bytes: The size of the weights.
        length: Tokens per text, on average.
        latency: Median seconds of a forward pass, by batch size.
        texts: The texts that the model was timed on.
        threads: The number of threads.
        device: The device.
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
    """The speed-up of a model over another, timed in turns on the same batches.

    Args:
        ratio: Median over rounds of the other's time divided by the model's.
        low: Lower end of the median's 95 % confidence interval.
        high: Upper end of the interval.
        busy: Why the ratio is uncertain: the machine was busy, or the time limit allowed only a few rounds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    ratio: float
    low: float
    high: float
    busy: str | None = None


class Row(BaseModel):
    """A row of a comparison. Rows of times have the speed-up measured in turns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    what: str
    before: float
    after: float
    unit: str = ""
    speedup: Speedup | None = None

    @property
    def ratio(self) -> float:
        """How many times smaller or faster; for times, the median over rounds, not the quotient of two medians."""
        return self.speedup.ratio if self.speedup else self.before / self.after

    @property
    def low(self) -> float | None:
        """Lower end of the ratio's interval, if measured."""
        return self.speedup.low if self.speedup else None

    @property
    def high(self) -> float | None:
        """Upper end of the ratio's interval, if measured."""
        return self.speedup.high if self.speedup else None


def compare(before: Sizes, after: Sizes, speedup: Mapping[int, Speedup]) -> list[Row]:
    """Return each size before and after, with the speed-up at each batch size.

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
