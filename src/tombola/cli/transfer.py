"""tombola transfer"""

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
from tombola.cli.outcome import close, show_plan, write_page


@verb(long=True)
def transfer(
    screen: Screen,
    recipe: Recipe,
    overrides: Overrides = None,
    source: Annotated[
        list[str] | None, typer.Option(help="A task whose mask is tried; may be repeated.")
    ] = None,
    target: Annotated[list[str] | None, typer.Option(help="A task to train on; may be repeated.")] = None,
    output: Output = None,
    store: Store = None,
    dry_run: DryRun = False,
    engine: EngineName = None,
    workers: Workers = None,
    address: Address = None,
    report: Report = True,
) -> None:
    """Train some tasks under the masks of others, and compare with dense.

    [bold]Example:[/bold] tombola transfer bert_tickets/transfer --source sst2 --source wikitext --target rte
    """
    from tombola import api
    from tombola.cli import tables

    chosen = chosen_engine(engine, workers, address)
    with screen.watch("planning") as watcher:
        plan = api.plan_transfer(recipe, overrides or (), source or (), target or ())
        if not dry_run:
            result = api.transfer(plan, output=output, store=store, engine=chosen, watcher=watcher)
            page = write_page(result, store) if report else None
    if dry_run:
        show_plan(screen, plan, store)
        return
    matrix = result.transfer()
    if matrix is not None:
        screen.print(tables.transfer_table(matrix))
    close(screen, result, page)
