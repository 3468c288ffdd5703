"""The claims of a recipe and their outcomes."""

from __future__ import annotations

from tombola.report.parts import Column, Row, Section, Table
from tombola.report.rows import difference, words
from tombola.results.formatting import write_axes
from tombola.results.result import Result

NOTE = (
    "Stated in the recipe. A claim holds if the whole 95 % interval of the gain is above the claimed value, does not "
    "hold if the whole interval is below it, and is not shown otherwise. The gain is the difference or, if lower is "
    "better for the score, its opposite. Differences are paired by seed; the intervals are not corrected for the "
    "number of claims."
)


def claims(result: Result) -> Section | None:
    """Return a table of the claims: the compared variants, their difference, and the verdict."""
    judged = result.claims()
    with_axes = any(judgement.axes for judgement in judged)
    columns = [
        *(
            Column("claim", "prose"),
            Column("verdict"),
            Column("variant"),
            Column("compared with"),
            Column("on"),
        ),
        *([Column("at")] if with_axes else []),
        *(Column("difference", "points"), Column("gain at least"), Column("seeds", "count")),
    ]
    rows = [
        Row(
            [
                *(judgement.claim, judgement.verdict, judgement.variant, judgement.over, judgement.on),
                *([write_axes(judgement.axes)] if with_axes else []),
                difference(judgement.difference, judgement.metric) if judgement.difference else None,
                f"{judgement.by:+g}".replace("-", "−") if judgement.by else "0",
                judgement.difference.seeds if judgement.difference else None,
            ],
            {"variant": judgement.variant, **words(judgement.axes)},
        )
        for judgement in judged
    ]
    return Section("Claims", NOTE, [Table("claims", columns, rows)]) if rows else None
