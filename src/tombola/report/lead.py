"""The top of the page: the conclusion, the facts behind it, reasons for doubt, and the main chart."""

from __future__ import annotations

from collections.abc import Mapping

from tombola.attacks.report import AttackReport
from tombola.report.curves import first_chart
from tombola.report.parts import Curves, Interval, Intervals, Lead, Section
from tombola.report.rows import facets, line, score_format, title, words
from tombola.results.conclusion import conclude
from tombola.results.formatting import write_share, write_value
from tombola.results.result import Result
from tombola.results.summary import Summary, by_baseline

MODELS = 8
"""The most models of one baseline in a chart of intervals; more are only in the table."""


def lead(result: Result) -> Lead:
    """Return the conclusion, the facts (examples, seeds, precision, hardware, date, version) and reasons for doubt."""
    return Lead(unbroken(conclude(result)), _facts(result), [unbroken(note) for note in result.notes])


def unbroken(text: str) -> str:
    """Keep numbers and percent signs on one line."""
    return text.replace(" %", "\u00a0%")


def attack_lead(attacks: Mapping[str, AttackReport]) -> Lead:
    """Return the accuracy of each model under separate attacks."""
    sentences = []
    for name, report in attacks.items():
        summary = report.summary()
        clean, under = (
            write_value(summary[metric], "accuracy") for metric in ("clean_accuracy", "accuracy_under_attack")
        )
        low, high = (100 * bound for bound in summary["accuracy_under_attack_interval"])
        sentences.append(
            f"{report.attack} on {name}: accuracy {under} under attack (95 %: {low:.1f} to {high:.1f}) against {clean} "
            "clean."
        )
    sizes = " and ".join(dict.fromkeys(f"{len(report.examples):,}" for report in attacks.values()))
    seeds = ", ".join(dict.fromkeys(str(report.seed) for report in attacks.values()))
    return Lead(unbroken(" ".join(sentences)), [f"{sizes} examples", f"seed {seeds}"])


def glance(result: Result) -> Section | None:
    """Return the main chart: scores against sparsity if tickets have several, else all models with intervals."""
    chart: Curves | Intervals | None = first_chart(result)
    if chart is not None:
        return Section("At a glance", "", [chart])
    groups = by_baseline(result.summaries())
    if len(groups) > 1 and all(len(rows) == 1 for rows in groups):
        groups = [result.summaries()]
    charts = [_intervals(result, rows) for rows in groups if 1 < len(rows) <= MODELS]
    return Section("At a glance", "", charts[:2]) if charts else None


def _intervals(result: Result, rows: list[Summary]) -> Intervals:
    axes = words(rows[0].baseline_key) if all(row.shares_baseline(rows[0]) for row in rows) else {}
    spots = [
        Interval(
            on,
            line(row) if row.dense else f"{line(row)} {write_share(row.sparsity)}",
            row.scores[on].mean,
            row.scores[on].low,
            row.scores[on].high,
            score_format(row.metrics[on]),
            facets(row),
        )
        for on in result.targets
        for row in rows
        if on in row.scores
    ]
    return Intervals(title(axes, "scores with 95 % intervals"), spots, axes)


def _facts(result: Result) -> list[str]:
    cells, record = result.cells, result.record
    facts = []
    sizes = {on: next(iter(cell.scores[on].values())).n for cell in cells[:1] for on in list(cell.scores)[:1]}
    facts += [f"{n:,} examples of {on}" for on, n in sizes.items()]
    seeds = sorted({cell.seed for cell in cells})
    if seeds:
        facts.append(f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}")
        facts.append(" and ".join(sorted({cell.precision for cell in cells})))
    machine = record.machine
    if machine:
        cores = machine.get("cores", "")
        cores = f"{cores} {'core' if cores == 1 else 'cores'}"
        facts.append(f"{machine.get('processor', '')}, {cores}, {machine.get('device', '')}")
    facts += [record.date] if record.date else []
    version = record.versions.get("tombola")
    return [*facts, *([f"tombola {version}"] if version else [])]
