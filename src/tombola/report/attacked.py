"""Attacked sentences, old and new, with the changed words marked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tombola.attacks.report import AttackReport, Example
from tombola.attacks.text import Text
from tombola.report.parts import Facets, Section, Sentence, Sentences
from tombola.report.rows import facets, model
from tombola.results.result import Result
from tombola.store.store import Store

SHOWN = 8
"""Successes of one attack on one model that the page shows; examples.csv of the attack has them all."""


def attacked(result: Result | None, attacks: Mapping[str, AttackReport], store: Store) -> Section | None:
    """What attacks did to texts: those of a result's cells, and those that were run by themselves."""
    found = [
        *(_of_cells(result, store) if result else []),
        *((name, report, {}) for name, report in attacks.items()),
    ]
    parts = [
        Sentences(f"{report.attack} on {name}", list(_sentences(report, where)))
        for name, report, where in found
        if report.of("Successful")
    ]
    note = (
        f"Up to {SHOWN} texts for each attack and model, whose label changed with the marked words; the label before "
        "and after, and the queries that it took."
    )
    return Section("Attacked sentences", note, parts) if parts else None


def _of_cells(result: Result, store: Store) -> Iterator[tuple[str, AttackReport, Facets]]:
    for cells in result.groups():
        row = result.summary(cells)
        for folder in _folders(cells[0]["stages"].get("attacks", {}).values(), store):
            yield model(row), AttackReport.load(folder), facets(row)


def _folders(keys: Iterable[str], store: Store) -> Iterator[Path]:
    """The stages that are still in the store: it may have been cleared since the run."""
    for key in keys:
        if (folder := store.root / "attack" / key).is_dir():
            yield folder


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
