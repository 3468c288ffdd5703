"""The main table: dense models and their tickets, with scores, size and speed."""

from __future__ import annotations

from collections.abc import Container

from tombola.report.parts import Column, Estimate, Row, Section, Table, Value
from tombola.report.rows import estimate, facets, score_format, words
from tombola.results.formatting import SPARSITY, short_axis
from tombola.results.record import UNDER_ATTACK
from tombola.results.result import Result
from tombola.results.summary import Summary, by_baseline, parameters_left
from tombola.shrink.sizes import Speedup


def headline(result: Result) -> Section:
    """Return the main table: sparsity, scores (clean, out of distribution, under attack), size, speed-up."""
    rows = result.summaries()
    axes = list(dict.fromkeys(axis for row in rows for axis in row.axes if axis != SPARSITY))
    batches = sorted({batch for row in rows for batch in row.speedup})
    shipped = any(row.shipped for row in rows)
    best = {_best(group, on) for group in by_baseline(rows) for on in result.targets}
    columns = [
        Column("variant"),
        *(Column(short_axis(axis)) for axis in axes),
        Column("sparsity (prunable weights)", "sparsity"),
        *(_score_column(result, on) for on in result.targets),
        Column("parameters left (whole model)", "count", "size"),
        *(
            [Column("parameters shipped", "count", "size"), Column("MB on disk", "number", "size")]
            if shipped
            else []
        ),
        *(Column(f"speed-up, batch {batch}", "ratio", "speed") for batch in batches),
        *(Column(f"ms, batch {batch}", "text", "speed") for batch in batches),
    ]
    values = [
        Row(
            [
                row.variant,
                *(str(row.axes.get(axis, "")) for axis in axes),
                row.sparsity,
                *(_estimate(row, on, best) for on in result.targets),
                count,
                *(_shipped(row) if shipped else []),
                *(_ratio(row.speedup.get(batch)) for batch in batches),
                *(_milliseconds(row, batch) for batch in batches),
            ],
            facets(row),
        )
        for row, count in zip(rows, parameters_left(rows), strict=True)
    ]
    note = _note(result, rows, shipped, bool(batches))
    return Section("Scores", "", [Table("scores", columns, values, note)])


def matching(result: Result) -> Section | None:
    """Return a table of the sparsest matching ticket for each data set, attack and variant."""
    matches = [(on, row) for on in result.targets for row in result.matching(on)]
    if not matches:
        return None
    axes = list(dict.fromkeys(axis for _, row in matches for axis in row.baseline_key))
    batches = sorted({batch for _, row in matches for batch in row.speedup})
    several = len({row.dense for _, row in matches}) > 1
    noted = any(row.note for _, row in matches)
    spread = _spread(result.summaries())
    columns = [
        Column("on"),
        Column("variant"),
        *(Column(short_axis(axis)) for axis in axes),
        *([Column("compared with")] if several else []),
        Column(f"sparsity within one {spread}", "percent"),
        Column("sparsity not worse than the mean", "percent"),
        *(Column(f"speed-up, batch {batch}", "ratio") for batch in batches),
        *([Column("note", "prose")] if noted else []),
    ]
    rows = [
        Row(
            [
                on,
                row.variant,
                *(str(row.baseline_key.get(axis, "")) for axis in axes),
                *([row.dense] if several else []),
                row.within,
                row.strict,
                *(_ratio(row.speedup.get(batch)) for batch in batches),
                *([row.note or ""] if noted else []),
            ],
            {"variant": row.variant, **words(row.baseline_key)},
        )
        for on, row in matches
    ]
    note = (
        "The sparsest ticket of each variant that matches the dense model: its score is worse by at most one "
        f"{spread} of the dense model's, or not worse at all. In percent of the prunable weights removed; a dash "
        "means that no ticket matches."
    )
    return Section("Matching tickets", note, [Table("matching", columns, rows)])


def _score_column(result: Result, on: str) -> Column:
    metric = result.headline(on)
    name = on if metric == UNDER_ATTACK else f"{on}, {metric}"
    return Column(name, score_format(metric), result.condition(on))


def _shipped(row: Summary) -> list[Value]:
    return [row.shipped.parameters, row.shipped.bytes / 1e6] if row.shipped else [None, None]


def _ratio(speedup: Speedup | None) -> Value:
    return Estimate(speedup.ratio, speedup.low, speedup.high) if speedup else None


def _milliseconds(row: Summary, batch: int) -> Value:
    """Return the times behind a speed-up: dense model and ticket, timed in the same process."""
    if row.shipped is None or batch not in row.speedup or batch not in row.shipped.milliseconds:
        return None
    dense, ticket = row.shipped.milliseconds[batch]
    return f"{dense:.3g} → {ticket:.3g}"


def _estimate(row: Summary, on: str, best: Container[tuple[int, str] | None]) -> Estimate | None:
    return estimate(row, on, best=(id(row), on) in best) if on in row.scores else None


def _best(rows: list[Summary], on: str) -> tuple[int, str] | None:
    """Return the best row of a baseline, if its interval does not overlap with any other."""
    scored = sorted((row for row in rows if on in row.scores), key=lambda row: row.merit(on))
    if len(scored) < 2:
        return None
    *rivals, best = scored
    score, others = best.scores[on], [rival.scores[on] for rival in rivals]
    alone = all(score.low > other.high or score.high < other.low for other in others)
    return (id(best), on) if alone else None


def _spread(rows: list[Summary]) -> str:
    return "standard deviation" if any(row.dense and row.seeds > 1 for row in rows) else "standard error"


def _note(result: Result, rows: list[Summary], shipped: bool, timed: bool) -> str:
    seeds = sorted({row.seeds for row in rows})
    over = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
    sentences = [
        f"{f'Means over {over} seeds' if seeds[-1] > 1 else 'Scores of one seed'}, with 95 % intervals.",
        "Shares are in percent, other scores are numbers.",
        "The best score of a baseline is marked if its interval overlaps with no other.",
        "Sparsity is the share of prunable weights that are removed.",
    ]
    if shipped:
        sentences.append(
            "Shipped sizes are those of shrunk models for structured tickets, and of packed ones for others."
        )
    if timed:
        sentences.append(
            "A speed-up of 2 means twice as fast as the dense model, timed in turns in one process. Milliseconds "
            "(dense → ticket) are from that process and cannot be compared between rows."
        )
    return " ".join(sentences)
