"""Verbs that draw tickets: quickstart, run, transfer."""

from pathlib import Path
from typing import Annotated

import typer

from tombola.cli.options import Output, Overrides, Recipe, Store, app


@app.command()
def quickstart(output: Output = Path("quickstart"), store: Store = None) -> None:
    """Draw a first ticket with nothing but the package: its own model, its own data, minutes on two cores.

    [bold]Example:[/bold] tombola quickstart
    """
    _run("quickstart", [], output, store, report=True)


@app.command()
def run(
    recipe: Recipe,
    overrides: Overrides = None,
    output: Output = None,
    store: Store = None,
    report: Annotated[bool, typer.Option(help="Also write report.html.")] = True,
) -> None:
    """Run a recipe: search, draw, retrain, evaluate. What is finished already is not run again.

    [bold]Example:[/bold] tombola run bert_tickets/quick draw.sparsity=0.5 seed=\\[1,2,3]
    """
    _run(recipe, overrides or [], output, store, report)


def _run(recipe: str, overrides: list[str], output: Path | None, store: str | None, report: bool) -> None:
    from tombola.cli import console, tables
    from tombola.pipeline.engines.ranks import is_main
    from tombola.pipeline.running import run as run_recipe
    from tombola.results.phases import phase_table, places

    with console.watching() as watch:
        result = run_recipe(
            recipe, overrides, output=output, store=store, announce=console.announce, watch=watch
        )
    if not is_main():
        return
    console.out.print(tables.result_table(result))
    for place in places(result):
        console.out.print(phase_table(result, place=place))
    for line in tables.matching_lines(result):
        console.out.print(line, highlight=False)
    console.say("results", result.folder / "results.json")
    if any(cell["ticket"] for cell in result.cells):
        console.say("tickets", result.folder / "tickets")
    if report:
        from tombola.report import write_report

        console.say("report", write_report(result, store=store))


@app.command()
def transfer(
    recipe: Recipe,
    overrides: Overrides = None,
    source: Annotated[
        list[str] | None, typer.Option(help="A task whose mask is tried; may be repeated.")
    ] = None,
    target: Annotated[list[str] | None, typer.Option(help="A task to train on; may be repeated.")] = None,
    output: Output = None,
    store: Store = None,
) -> None:
    """Train some tasks under the masks of others, and compare with dense.

    [bold]Example:[/bold] tombola transfer bert_tickets/transfer --source sst2 --source wikitext --target rte
    """
    from tombola.cli import console, tables
    from tombola.pipeline.transferring import transfer as run_transfer
    from tombola.report import write_report

    with console.watching() as watch:
        result, matrix = run_transfer(
            recipe,
            overrides or [],
            sources=source or [],
            targets=target or [],
            output=output,
            store=store,
            announce=console.announce,
            watch=watch,
        )
    console.out.print(tables.transfer_table(matrix))
    console.say("results", result.folder / "results.json")
    console.say("report", write_report(result, store=store))
