"""tombola study"""

from pathlib import Path
from typing import Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import (
    Address,
    DryRun,
    EngineName,
    Output,
    Overrides,
    Recipe,
    Report,
    Store,
    Workers,
    chosen_engine,
    verb,
)
from tombola.cli.outcome import show_plan, show_result, write_page


@verb(long=True)
def study(
    screen: Screen,
    file: Recipe,
    overrides: Overrides = None,
    output: Output = None,
    store: Store = None,
    dry_run: DryRun = False,
    engine: EngineName = None,
    workers: Workers = None,
    address: Address = None,
    table: Annotated[
        Path | None, typer.Option(help="Write the statistics to a .csv, .json or .parquet file.")
    ] = None,
    tickets: Annotated[bool, typer.Option(help="Also write a ticket for each cell.")] = False,
    report: Report = True,
) -> None:
    """Run a grid of recipes: what cells share runs once, and what fails does not stop the rest.

    The same command goes on where it stopped: what is finished is not run again.

    [bold]Example:[/bold] tombola study bert_tickets/quick seed=\\[1,2,3] --workers 2 --table study.csv
    """
    from tombola import api
    from tombola.pipeline.study import plan_study, read_study
    from tombola.results.export import write_table

    settings = read_study(file, overrides or ())
    chosen = chosen_engine(engine, workers, address, settings.engine)
    with screen.watch("planning") as watcher:
        plan = plan_study(settings)
        if not dry_run:
            result = api.study(
                plan, output=output, store=store, engine=chosen, tickets=tickets, watcher=watcher
            )
            page = write_page(result, store) if report else None
    if dry_run:
        show_plan(screen, plan, store)
        return
    if table and result.cells:
        screen.wrote("table", write_table(result.rows(), table))
    show_result(screen, result, page)
