"""The table at the top: the dense model against its tickets, in scores, size and speed."""

from __future__ import annotations

from tombola.report.parts import Column, Estimate, Row, Section, Table, Value
from tombola.report.rows import SPARSITY, facets, short
from tombola.report.speeds import Speed, read_speeds
from tombola.results.result import Result, Summary

_SPEED = [
    Column("parameters shipped", "count", "size"),
    Column("MB on disk", "number", "size"),
    Column("latency", "milliseconds", "size"),
]


def headline(result: Result) -> Section:
    """Dense and tickets: sparsity, scores (clean, out of distribution, under attack), size, latency."""
    rows, speeds = result.summaries(), read_speeds(result)
    axes = list(dict.fromkeys(axis for row in rows for axis in row.axes if axis != SPARSITY))
    timed = any(speeds)
    columns = [
        Column("variant"),
        *(Column(short(axis)) for axis in axes),
        Column("sparsity", "sparsity"),
        *(Column(_heading(result, on), "percent", result.family(on)) for on in result.targets),
        Column("parameters left", "count", "size"),
        *(_SPEED if timed else []),
    ]
    values = [
        Row(
            [
                row.variant,
                *(str(row.axes.get(axis, "")) for axis in axes),
                row.sparsity,
                *(_estimate(row, on, rows) for on in result.targets),
                row.left or _whole(row, rows),
                *(_speed(speed) if timed else []),
            ],
            facets(row),
        )
        for row, speed in zip(rows, speeds, strict=True)
    ]
    return Section("Scores", _note(result, rows, timed), [Table("scores", columns, values)])


def matching(result: Result) -> Section | None:
    """For each variant, the sparsest ticket that is as good as the dense model."""
    on = result.targets[0]
    found = result.matching(on)
    if not found:
        return None
    axes = list(dict.fromkeys(axis for one in found for axis in one.place))
    several = len({one.dense for one in found}) > 1
    columns = [Column("variant"), *(Column(short(axis)) for axis in axes)]
    columns += [Column("compared with")] if several else []
    columns += [Column("within one deviation", "percent"), Column("not below the mean", "percent")]
    rows = [
        Row(
            [
                one.variant,
                *(str(one.place.get(axis, "")) for axis in axes),
                *([one.dense] if several else []),
                one.within,
                one.strict,
            ],
            {"variant": one.variant, **{axis: str(value) for axis, value in one.place.items()}},
        )
        for one in found
    ]
    note = (
        f"The sparsest ticket of each variant that matches the dense model on {on}: its mean is at most one standard "
        "deviation of the dense model's below the dense mean, or not below it at all. A dash: none does."
    )
    return Section("Matching tickets", note, [Table("matching", columns, rows)])


def _heading(result: Result, on: str) -> str:
    metric = result.headline(on)
    return on if result.family(on) == "under attack" else f"{on}, {metric}"


def _speed(speed: Speed | None) -> list[Value]:
    return [speed.parameters, speed.bytes / 1e6, speed.milliseconds] if speed else [None, None, None]


def _whole(row: Summary, rows: list[Summary]) -> int | None:
    """The parameters of the dense model, as its tickets know them."""
    return next((other.parameters for other in rows if other.place == row.place and other.parameters), None)


def _estimate(row: Summary, on: str, rows: list[Summary]) -> Estimate | None:
    if on not in row.scores:
        return None
    score = row.scores[on]
    rivals = [other.scores[on]["mean"] for other in rows if other.place == row.place and on in other.scores]
    return Estimate(
        score["mean"], score["low"], score["high"], best=len(rivals) > 1 and score["mean"] == max(rivals)
    )


def _note(result: Result, rows: list[Summary], timed: bool) -> str:
    seeds = max(row.seeds for row in rows)
    precision = " and ".join(sorted({cell["precision"] for cell in result.cells}))
    spread = f"Means over {seeds} seeds" if seeds > 1 else "Scores of one seed"
    speed = (
        " Shipped: structured tickets shrunk, others packed; latency is the median of the smallest batch."
        if timed
        else ""
    )
    return (
        f"{spread} in percent, with 95 % intervals; the highest of each column is marked. Sparsity is the share of the "
        f"prunable weights that is removed. Trained and evaluated in {precision}.{speed}"
    )
