"""How numbers and names of a result are written: in the terminal, in LaTeX and in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tombola.tasks.metrics import is_share as is_share

if TYPE_CHECKING:
    from tombola.results.record import Estimate
    from tombola.shrink.sizes import Speedup

LARGE = 10_000
"""Numbers from here on, such as the perplexity of a destroyed model, are written with three digits."""

SPARSITY = "draw.sparsity"
"""The axis that every table shows in a column of its own."""


def write_value(value: float, metric: str, sign: str = "") -> str:
    """A score alone: `82.4 %`, `−0.347` or `31.250`."""
    text = f"{100 * value:{sign}.1f} %" if is_share(metric) else _number(value, sign)
    return text.replace("-", "−")


def write_metric(metric: str) -> str:
    """A metric's name, with the direction where it is not the usual one: `perplexity (lower is better)`."""
    from tombola.tasks.metrics import lower_is_better

    return f"{metric} (lower is better)" if lower_is_better(metric) else metric


def write_estimate(estimate: Estimate | None, metric: str, sign: str = "") -> str:
    """A score with its spread: `82.4 % ± 1.2` or `−0.347 ± 0.021`."""
    if estimate is None:
        return ""
    spread = f"{100 * estimate.spread:.1f}" if is_share(metric) else _number(estimate.spread)
    return f"{write_value(estimate.mean, metric, sign)} ± {spread}"


def write_difference(estimate: Estimate, metric: str) -> str:
    """A difference with its 95 % interval: `+1.2 (−0.3 to +2.7)` points, or `+0.021 (…)` of a correlation."""
    mean, low, high = _signed(estimate, metric)
    return f"{mean} ({low} to {high})"


def write_interval(difference: Estimate, metric: str) -> str:
    """The same for a sentence: `+1.5 points, 95 %: −0.2 to +3.2`, or without a unit for a correlation."""
    mean, low, high = _signed(difference, metric)
    return f"{mean}{' points' if is_share(metric) else ''}, 95 %: {low} to {high}"


def _signed(difference: Estimate, metric: str) -> tuple[str, str, str]:
    """The mean and the ends of the interval with their signs, in points where the metric is a share."""
    values = (difference.mean, difference.low, difference.high)
    told = (f"{100 * value:+.1f}" if is_share(metric) else _number(value, "+") for value in values)
    mean, low, high = (value.replace("-", "−") for value in told)
    return mean, low, high


def _number(value: float, sign: str = "") -> str:
    """A number that is no share: three places, or three digits where it is large."""
    return f"{value:{sign}.3f}" if abs(value) < LARGE else f"{value:{sign}.3g}"


def write_share(share: float) -> str:
    """A sparsity as a reader would say it: `40 %`, or `41.7 %` where it is not whole."""
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def write_speedup(speedup: Speedup | None) -> str:
    """A ratio with its interval: `1.42 (1.38–1.47)`."""
    return f"{speedup.ratio:.2f} ({speedup.low:.2f}–{speedup.high:.2f})" if speedup else ""


def short_axis(axis: str) -> str:
    """An axis without the section that it is in: `search.step` → `step`."""
    return axis.rsplit(".", 1)[-1]


def short_value(value: Any) -> str:
    """A value of an axis; of a path its last part, without `.yaml`."""
    text = str(value)
    return PurePath(text).stem if text.endswith((".yaml", ".yml")) else text


def write_axes(axes: Mapping[str, Any]) -> str:
    """Axes with their values in words: `task rte, step 0.1`."""
    return ", ".join(f"{short_axis(axis)} {short_value(value)}" for axis, value in axes.items())


def short_targets(targets: Sequence[str], tasks: Iterable[str] = ()) -> dict[str, str]:
    """Short names for data sets: without the split that all other tasks share, and without the own task's name.

    Of a model for `reviews`, `reviews_product/test` is `product`. A name that would no longer be unique stays whole.

    Args:
        targets: Names as in `evaluate.on`.
        tasks: The tasks of the models.
    """
    splits = {target.rpartition("/")[2] for target in targets if _task_of(target)}
    prefixes = [f"{short_value(task)}_" for task in tasks]
    short = {}
    for target in targets:
        task, split = _task_of(target), target.rpartition("/")[2]
        name = short_value(target) if not task else short_value(task)
        for prefix in prefixes:
            name = name.removeprefix(prefix) or name
        short[target] = f"{name}/{split}" if task and len(splits) > 1 else name
    values = list(short.values())
    return {target: name if values.count(name) == 1 else target for target, name in short.items()}


def _task_of(target: str) -> str:
    """The task in `task/split`; nothing for a split alone, a task alone or a file."""
    return "" if target.endswith((".yaml", ".yml")) else target.rpartition("/")[0]
