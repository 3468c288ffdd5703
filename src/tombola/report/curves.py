"""Line charts: scores against sparsity, robustness over epochs, scores during training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tombola.pipeline.stages.attack import Attacked
from tombola.report.parts import Curves, Point, Section, Series
from tombola.report.rows import facets, line, model, point, score_format, title, words
from tombola.results.collecting import attack_score
from tombola.results.doubts import nothing_to_match
from tombola.results.matching import sparsest, standing
from tombola.results.record import UNDER_ATTACK
from tombola.results.result import Result
from tombola.results.summary import Summary, by_baseline, estimate_scores

RINGS = (
    "Bands: 95 % intervals. Dashed: the dense model. Ring: the sparsest ticket of a variant that matches it."
)


def against_sparsity(result: Result) -> Section | None:
    """Return charts of scores against the share of weights removed, for each data set and baseline.

    The first chart is left out: it is at the top of the page.
    """
    charts = _charts(result)[1:]
    return Section("More scores against sparsity", RINGS, charts) if charts else None


def first_chart(result: Result) -> Curves | None:
    """Return the main chart of a result whose tickets have several sizes."""
    return next((replace(chart, note=RINGS) for chart in _charts(result)), None)


def _charts(result: Result) -> list[Curves]:
    return [
        chart
        for rows in by_baseline(result.summaries())
        for on in result.targets
        if (chart := _chart(result, on, [row for row in rows if on in row.scores]))
    ]


def _chart(result: Result, on: str, rows: list[Summary]) -> Curves | None:
    lines: dict[str, list[Summary]] = {}
    for row in rows:
        lines.setdefault(line(row), []).append(row)
    if not any(len({row.sparsity for row in rows}) > 1 for rows in lines.values()):
        return None
    ringed = matching_rows(result, on, rows)
    several = sum(row.dense for row in rows) > 1
    ring = f"matches {next(row.variant for row in rows if row.dense)}" if several else "matches"
    series = [
        Series(
            name,
            [
                point(row, on, ring if row in ringed else "")
                for row in sorted(rows, key=lambda row: row.sparsity)
            ],
            facets(rows[0]),
            level=all(row.dense for row in rows),
        )
        for name, rows in lines.items()
    ]
    metric, axes = rows[0].metrics[on], words(rows[0].baseline_key)
    return Curves(
        title(axes, on), "weights removed", metric, series, facets=axes, y_format=score_format(metric)
    )


def matching_rows(result: Result, on: str, rows: Sequence[Summary]) -> list[Summary]:
    """Return the sparsest ticket of each variant that matches the first dense model."""
    dense = next((row for row in rows if row.dense), None)
    if dense is None or nothing_to_match(dense, on, result):
        return []
    good = [row for row in rows if not row.dense and standing(row, dense, on) != "below"]
    variants = dict.fromkeys(row.variant for row in good)
    best = (sparsest(row for row in good if row.variant == variant) for variant in variants)
    return [row for row in best if row]


def over_epochs(result: Result) -> Section | None:
    """Return charts of the accuracy under attack after every epoch, which rises with longer training alone."""
    charts = []
    for attack in dict.fromkeys(name for cell in result.cells for name in cell.curves):
        series = [
            Series(model(row), _epochs(runs), facets(row))
            for row in result.summaries()
            if (runs := [cell.curves[attack] for cell in row.cells if attack in cell.curves])
        ]
        if _is_line(series):
            charts.append(Curves(attack, "epoch", "accuracy under attack", series, x_format="count"))
    note = (
        "Accuracy under attack after every epoch, with 95 % intervals. Compare models after the same number of "
        "epochs: longer training alone increases robustness."
    )
    return Section("Robustness over epochs", note, charts) if charts else None


def while_training(result: Result) -> Section | None:
    """Return charts of the scores during the last training, by data set; a ring marks the model that was kept."""
    charts = []
    for on in dict.fromkeys(name for cell in result.cells for name in cell.course):
        rows = [row for row in result.summaries() if any(on in cell.course for cell in row.cells)]
        courses = [cell.course[on] for row in rows for cell in row.cells if on in cell.course]
        by_epoch = all(point.epoch.is_integer() for course in courses for point in course)
        metric = next(iter(courses[0][0].scores))
        series = [Series(model(row), _steps(row, on, by_epoch), facets(row)) for row in rows]
        if not _is_line(series):
            continue
        charts.append(
            Curves(
                on,
                "epoch" if by_epoch else "step",
                metric,
                series,
                x_format="count",
                y_format=score_format(metric),
            )
        )
    note = (
        "Scores during training, means over seeds with 95 % intervals. A ring marks an epoch or step chosen on other "
        "data."
    )
    return Section("Scores during training", note, charts) if charts else None


def _is_line(series: Sequence[Series]) -> bool:
    """Return whether any line has at least two points; tables show single points."""
    return any(len(line.points) > 1 for line in series)


def _steps(row: Summary, on: str, by_epoch: bool) -> list[Point]:
    """Return the mean over seeds after every step that all of them have."""
    cells = [cell for cell in row.cells if on in cell.course]
    kept = {cell.chosen.step for cell in cells if cell.chosen}
    points = []
    for course_points in zip(*(cell.course[on] for cell in cells), strict=False):
        metric, first = next(iter(course_points[0].scores)), course_points[0]
        score = estimate_scores([cell.scores[metric] for cell in course_points], metric)
        x = first.epoch if by_epoch else first.step
        points.append(Point(x, score.mean, score.low, score.high, "kept" if first.step in kept else ""))
    return points


def _epochs(runs: Iterable[Sequence[Attacked]]) -> list[Point]:
    points = []
    for epoch, attacks in enumerate(zip(*runs, strict=True), start=1):
        score = estimate_scores([attack_score(cell) for cell in attacks], UNDER_ATTACK)
        points.append(Point(epoch, score.mean, score.low, score.high))
    return points
