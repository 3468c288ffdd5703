"""tombola run"""

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
def run(
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
    """Run a recipe: search, draw, retrain, evaluate. What is finished already is not run again.

    [bold]Example:[/bold] tombola run bert_tickets/quick draw.sparsity=0.5 seed=\\[1,2,3]
    """
    from tombola import api

    chosen = chosen_engine(engine, workers, address)
    with screen.watch("planning") as watcher:
        plan = api.plan_run(recipe, overrides or ())
        if not dry_run:
            result = api.run(plan, output=output, store=store, engine=chosen, watcher=watcher)
            page = write_page(result, store) if report else None
    if dry_run:
        show_plan(screen, plan, store)
    else:
        show_result(screen, result, page)
