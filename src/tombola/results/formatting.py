"""Format the numbers and names of a result for the terminal, LaTeX and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tombola.tasks.metrics import is_share as is_share

if TYPE_CHECKING:
    from tombola.results.decisions import Estimate
    from tombola.shrink.sizes import Speedup

LARGE = 10_000
"""Numbers of at least this size, such as the perplexity of a destroyed model, are written with three digits."""

SPARSITY = "draw.sparsity"
"""The axis that every table shows in a separate column."""

RUNTIMES = {"transformers": "", "onnx": "ONNX", "onnx_int8": "ONNX int8"}
"""The names of runtimes beside a model's."""


def write_value(value: float, metric: str, sign: str = "") -> str:
    """Format a score: `82.4 %`, `−0.347` or `31.250`."""
    text = f"{100 * value:{sign}z.1f} %" if is_share(metric) else _number(value, sign)
    return text.replace("-", "−")


def write_metric(metric: str) -> str:
    """Return a metric's name, and say if lower is better: `perplexity (lower is better)`."""
    from tombola.tasks.metrics import lower_is_better

    return f"{metric} (lower is better)" if lower_is_better(metric) else metric


def write_estimate(estimate: Estimate | None, metric: str, sign: str = "") -> str:
    """Format a score with its spread: `82.4 % ± 1.2` or `−0.347 ± 0.021`."""
    if estimate is None:
        return ""
    spread = f"{100 * estimate.spread:.1f}" if is_share(metric) else _number(estimate.spread)
    return f"{write_value(estimate.mean, metric, sign)} ± {spread}"


def write_difference(estimate: Estimate, metric: str) -> str:
    """Format a difference with its 95 % interval: `+1.2 (−0.3 to +2.7)` in points, `+0.021 (…)` for a correlation."""
    mean, low, high = _signed(estimate, metric)
    return f"{mean} ({low} to {high})"


def write_interval(difference: Estimate, metric: str) -> str:
    """Format a difference for a sentence: `+1.5 points, 95 %: −0.2 to +3.2`; without a unit for a correlation."""
    mean, low, high = _signed(difference, metric)
    return f"{mean}{' points' if is_share(metric) else ''}, 95 %: {low} to {high}"


def _signed(difference: Estimate, metric: str) -> tuple[str, str, str]:
    """Format the mean and the ends of the interval with signs, in points if the metric is a share."""
    values = (difference.mean, difference.low, difference.high)
    formatted = (f"{100 * value:+z.1f}" if is_share(metric) else _number(value, "+") for value in values)
    mean, low, high = (value.replace("-", "−") for value in formatted)
    return mean, low, high


def _number(value: float, sign: str = "") -> str:
    """Format a number that is not a share, with three decimals, or three digits if it is large."""
    return f"{value:{sign}z.3f}" if abs(value) < LARGE else f"{value:{sign}.3g}"


def write_share(share: float) -> str:
    """Format a share: `40 %`, or `41.7 %` if it is not whole."""
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def write_speedup(speedup: Speedup | None) -> str:
    """Format a speed-up with its interval: `1.42 (1.38–1.47)`."""
    return f"{speedup.ratio:.2f} ({speedup.low:.2f}–{speedup.high:.2f})" if speedup else ""


def write_axis(axis: str, value: Any) -> str:
    """Format an axis with its value: `step 0.1`; a runtime by its name alone, and the usual one not at all."""
    return RUNTIMES[value] if axis == "runtime" else f"{short_axis(axis)} {short_value(value)}"


def short_axis(axis: str) -> str:
    """Return an axis without its section: `search.step` → `step`."""
    return axis.rsplit(".", 1)[-1]


def short_value(value: Any) -> str:
    """Format the value of an axis; for the path of a YAML file, its stem."""
    text = str(value)
    return PurePath(text).stem if text.endswith((".yaml", ".yml")) else text


def write_axes(axes: Mapping[str, Any]) -> str:
    """Format axes with their values: `task rte, step 0.1`."""
    return ", ".join(f"{short_axis(axis)} {short_value(value)}" for axis, value in axes.items())


def short_targets(targets: Sequence[str], tasks: Iterable[str] = ()) -> dict[str, str]:
    """Return short names for data sets, without the split that all other tasks share and the model's own task.

    For a model of `reviews`, `reviews_product/test` becomes `product`. Names that would become ambiguous stay whole.

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
    """Return the task in `task/split`; empty for a split, a task or a file."""
    return "" if target.endswith((".yaml", ".yml")) else target.rpartition("/")[0]
