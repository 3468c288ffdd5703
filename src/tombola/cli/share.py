"""tombola share"""

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
def share(
    screen: Screen,
    recipe: Recipe,
    overrides: Overrides = None,
    output: Output = None,
    store: Store = None,
    dry_run: DryRun = False,
    engine: EngineName = None,
    workers: Workers = None,
    address: Address = None,
    report: Report = True,
) -> None:
    """Train several tasks on one encoder, each under its own ticket, and compare with sharing everything.

    One task of the result is cut out and made small by: tombola shrink TICKET --task NAME -o DIR

    [bold]Example:[/bold] tombola share super_tickets/mtl_quick seed=\\[1,2,3]
    """
    from tombola import api
    from tombola.cli import tables

    chosen = chosen_engine(engine, workers, address)
    with screen.watch("planning") as watcher:
        plan = api.plan_share(recipe, overrides or ())
        if not dry_run:
            result = api.share(plan, output=output, store=store, engine=chosen, watcher=watcher)
            page = write_page(result, store) if report else None
    if dry_run:
        show_plan(screen, plan, store)
        return
    for on in (one for one in result.datasets if result.sharing(one)):
        screen.print(tables.share_table(result, on))
    close(screen, result, page)
