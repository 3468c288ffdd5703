"""Attacked sentences before and after, with the changed words marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tombola.attacks.report import AttackReport, Example
from tombola.attacks.text import Text
from tombola.errors import TombolaError
from tombola.report.parts import Column, Estimate, Facets, Row, Section, Sentence, Sentences, Table
from tombola.report.rows import facets, model
from tombola.results.result import Result
from tombola.store.store import Store

SHOWN = 8
"""The most successful attacks to show per attack and model; the attack's examples.csv has all of them."""


def attacked(result: Result | None, attacks: Mapping[str, AttackReport], store: Store) -> Section | None:
    """Return the section of attacked texts: those of a result, and those of separate attacks."""
    reports: list[tuple[str, AttackReport, Facets]] = []
    missing: list[str] = []
    if result is not None:
        _read_cells(result, store, reports, missing)
    reports += [(name, report, {}) for name, report in attacks.items()]
    parts = [
        Sentences(f"{report.attack} on {name}", list(_sentences(report, where)))
        for name, report, where in reports
        if report.of("Successful")
    ]
    note = (
        f"Up to {SHOWN} texts per attack and model whose label changed with the marked words, with the label before "
        "and after, and the number of queries."
    )
    remarks = (
        [f"The texts of {', '.join(missing)} are not shown: they are not in the store."] if missing else []
    )
    return Section("Attacked sentences", note, parts, remarks) if parts or remarks else None


def figures(attacks: Mapping[str, AttackReport]) -> Section | None:
    """Return the table of separate attacks, one row each."""
    columns = [
        Column("model"),
        Column("attack"),
        Column("examples", "count"),
        Column("clean accuracy", "percent"),
        Column("accuracy under attack", "percent"),
        Column("success rate", "percent"),
        Column("queries", "number"),
        Column("changed words", "number"),
        Column("words changed, %", "percent"),
        Column("similarity", "correlation"),
    ]
    rows = []
    for name, report in attacks.items():
        summary = report.summary()
        low, high = summary["accuracy_under_attack_interval"]
        under = Estimate(summary["accuracy_under_attack"], low, high)
        means = ("mean_queries", "mean_changed_words", "mean_changed_share", "mean_similarity")
        rows.append(
            Row(
                [
                    name,
                    report.attack,
                    summary["n"],
                    summary["clean_accuracy"],
                    under,
                    summary["success_rate"],
                    *(summary[mean] for mean in means),
                ]
            )
        )
    note = "Queries are means over all attacked texts, the rest over successful attacks; the interval is at 95 %."
    return Section("Figures", "", [Table("figures", columns, rows, note)]) if rows else None


def _read_cells(
    result: Result, store: Store, reports: list[tuple[str, AttackReport, Facets]], missing: list[str]
) -> None:
    """Read the attacks of each row's first seed; note those that are no longer in the store."""
    for row in result.summaries():
        for attack, stage in row.cells[0].stages.attacks.items():
            try:
                reports.append((model(row), AttackReport.load(store.open(stage)), facets(row)))
            except TombolaError:
                missing.append(f"{attack} on {model(row)}")


def _sentences(report: AttackReport, where: Facets) -> Iterator[Sentence]:
    for example in report.of("Successful")[:SHOWN]:
        before, after = report.labels[example.original_output], report.labels[example.perturbed_output]
        yield Sentence(
            title=f"{before} → {after}",
            verdict=f"queries: {example.num_queries}, changed words: {len(example.changes)}",
            old=_columns(report, example, example.original_text),
            new=_columns(report, example, example.perturbed_text),
            facets=where,
        )


def _columns(report: AttackReport, example: Example, text: Text) -> list[tuple[str, list[tuple[str, bool]]]]:
    return [(name, list(text.pieces(c, example.changes))) for c, name in enumerate(report.columns)]
