"""Robustness as a curve: accuracy against the number of words that an attack may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tombola.attacks.changed_words import LIMITS, LimitedAccuracy
from tombola.attacks.report import AttackReport
from tombola.evaluation.scores import Score
from tombola.report.curves import matching_rows
from tombola.report.parts import Curves, Point, Section, Series
from tombola.report.rows import facets, line, title, words
from tombola.results.formatting import write_share
from tombola.results.record import UNDER_ATTACK
from tombola.results.result import Result
from tombola.results.summary import Summary, by_baseline, estimate_scores

TICKS = ["∞" if limit is None else str(limit) for limit in LIMITS]


def by_changed_words(result: Result | None, attacks: Mapping[str, AttackReport]) -> Section | None:
    """Return a chart for each attack and baseline with a line per variant, and charts of separate attacks."""
    charts = [
        chart
        for rows in (by_baseline(result.summaries()) if result else ())
        for attack in dict.fromkeys(name for row in rows for name in row.cells[0].attacks)
        if result and (chart := _chart(result, attack, rows))
    ]
    for attack in dict.fromkeys(report.attack for report in attacks.values()):
        series = [
            Series(name, _points([(len(report.examples), report.by_changed_words())]), {})
            for name, report in attacks.items()
            if report.attack == attack
        ]
        charts.append(_curves(attack, series, {}))
    note = (
        "Accuracy if the attack may change at most this many words per text, with 95 % intervals: 0 is the clean "
        "accuracy, ∞ the accuracy under attack. Attacks are greedy and may change more words than necessary, so the "
        "lines are upper bounds. Of several tickets of a variant, the chart shows the sparsest that matches the dense "
        "model under attack, or the densest if none does."
    )
    return Section("Accuracy by changed words", note, charts) if charts else None


def _chart(result: Result, attack: str, rows: Sequence[Summary]) -> Curves | None:
    scored = [row for row in rows if _has_curve(row, attack)]
    dense = [row for row in scored if row.dense]
    lines: dict[str, list[Summary]] = {}
    for row in scored:
        lines.setdefault(line(row), []).append(row)
    series = []
    for name, tickets in lines.items():
        matching = matching_rows(result, attack, [*dense, *tickets])
        shown = next((row for row in tickets if row in matching), min(tickets, key=lambda row: row.sparsity))
        points = _points(
            [(cell.attacks[attack].n, cell.attacks[attack].by_changed_words) for cell in shown.cells]
        )
        label = name if len(tickets) == 1 else f"{name} {write_share(shown.sparsity)}"
        series.append(Series(label, points, facets(shown)))
    axes = words(scored[0].baseline_key) if scored else {}
    return _curves(title(axes, attack), series, axes) if series else None


def _has_curve(row: Summary, attack: str) -> bool:
    """Return whether every seed of a row has the curve of an attack."""
    return all(
        attack in cell.attacks
        and [point.words for point in cell.attacks[attack].by_changed_words] == list(LIMITS)
        for cell in row.cells
    )


def _curves(name: str, series: Sequence[Series], axes: Mapping[str, str]) -> Curves:
    return Curves(name, "words changed, at most", "accuracy", series, axes, x_format="count", ticks=TICKS)


def _points(curves: Sequence[tuple[int, Sequence[LimitedAccuracy]]]) -> list[Point]:
    """Return the mean over seeds at every limit; each seed comes with its number of examples."""
    points = []
    for place in range(len(LIMITS)):
        score = estimate_scores(
            [Score.of_share(curve[place].accuracy, n) for n, curve in curves], UNDER_ATTACK
        )
        points.append(Point(place, score.mean, score.low, score.high))
    return points
