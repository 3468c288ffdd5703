"""tombola compare"""

from pathlib import Path
from typing import Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import verb


@verb()
def compare(
    screen: Screen,
    folders: Annotated[
        list[Path], typer.Argument(help="Two or more run folders; the first is the reference.")
    ],
    on: Annotated[
        list[str] | None, typer.Option(help="Only this data set or attack; may be repeated.")
    ] = None,
    table: Annotated[
        Path | None, typer.Option(help="Write the comparison to a .csv, .json or .parquet file.")
    ] = None,
) -> None:
    """Compare runs: their scores side by side, and the differences from the first with 95 % intervals.

    Differences are paired by seed if the runs have the same seeds.

    [bold]Example:[/bold] tombola compare runs/imp runs/omp --on validation
    """
    from tombola import api
    from tombola.cli import tables
    from tombola.results.comparing import only
    from tombola.results.export import check_table, write_table

    if table:
        check_table(table)
    comparison = api.compare(*folders)
    rows = only(comparison, on or ())
    screen.print(tables.comparison_table(comparison, rows))
    if table:
        screen.wrote("table", write_table(comparison.rows(rows), table))
