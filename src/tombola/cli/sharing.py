"""The verb that trains several tasks on one encoder: share."""

from tombola.cli.options import Output, Overrides, Recipe, Store, app


@app.command()
def share(recipe: Recipe, overrides: Overrides = None, output: Output = None, store: Store = None) -> None:
    """Train several tasks on one encoder, each under its own ticket, and compare with sharing everything.

    One task of the result is cut out and made small by: tombola shrink TICKET --task NAME -o DIR

    [bold]Example:[/bold] tombola share super_tickets/mtl_quick seed=\\[1,2,3]
    """
    from tombola.cli import console
    from tombola.cli.share_table import share_table
    from tombola.pipeline.sharing import share as run_share

    with console.watching() as watch:
        result = run_share(
            recipe, overrides or [], output=output, store=store, announce=console.announce, watch=watch
        )
    for on in result.targets:
        console.out.print(share_table(result, on))
    console.say("results", result.folder / "results.json")
    console.say("tickets", result.folder / "tickets")
