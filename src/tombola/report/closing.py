"""The end of the page: failures, the exact recipe, and the package versions."""

from __future__ import annotations

from tombola.foundations.folders import publishable
from tombola.foundations.yaml12 import dump_yaml
from tombola.report.parts import Column, Listing, Part, Row, Section, Table
from tombola.results.result import Result


def failed(result: Result) -> Section | None:
    """Return the section of failed stages and the cells that are missing because of them."""
    columns = [
        Column("stage"),
        Column("description"),
        Column("reason", "prose"),
        Column("log"),
        Column("missing cells", "count"),
    ]
    rows = [
        Row([failure.stage, failure.label, failure.reason, publishable(failure.log), len(failure.cells)])
        for failure in result.failures
    ]
    note = "Run the same command again to retry these; finished stages are not repeated."
    return Section("Failures", note, [Table("failures", columns, rows)]) if rows else None


def recipe(result: Result) -> Section:
    """Return the section with the recipe as it was run, and the package versions."""
    text = dump_yaml(publishable(result.record.recipe), default_flow_style=None)
    versions = [Row([package, number]) for package, number in result.record.versions.items()]
    parts: list[Part] = [
        Listing("recipe", text),
        Table("versions", [Column("package"), Column("version")], versions),
    ]
    return Section(
        "Recipe and versions", "The recipe as it was run, and the versions of the packages.", parts
    )
