"""tombola study"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import verb
from tombola.cli.outcome import show_tables
from tombola.cli.running import RunOptions, carry_out

if TYPE_CHECKING:
    from tombola.results.result import Result


@verb(long=True, resumes=True)
def study(
    screen: Screen,
    options: RunOptions,
    table: Annotated[
        Path | None, typer.Option(help="Write the statistics to a .csv, .json or .parquet file.")
    ] = None,
    tickets: Annotated[bool, typer.Option(help="Also write a ticket for each cell.")] = False,
) -> None:
    """Run a grid of recipes: shared stages run once, and a failure does not stop the rest.

    The same command resumes where it stopped: finished stages are not run again.

    [bold]Example:[/bold] tombola study bert_tickets/quick seed='\\[1,2,3]' --table study.csv
    """
    from tombola import api
    from tombola.pipeline.study import plan_study, read_study
    from tombola.results.export import check_table, write_table

    if table:
        check_table(table)
    settings = read_study(options.recipe, options.changes)

    def show(screen: Screen, result: Result) -> None:
        if table and result.cells:
            screen.wrote("table", write_table(result.rows(), table))
        show_tables(screen, result)

    carry_out(
        screen,
        options,
        lambda: plan_study(settings),
        lambda: api.study,
        show,
        base=settings.engine,
        tickets=tickets,
    )
