"""The command. Each verb is a few lines over one function of the library."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tombola.errors import TombolaError
from tombola.version import __version__

app = typer.Typer(
    name="tombola",
    help="Draw sparse and robust winning tickets from pre-trained language models, and ship them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

Recipe = Annotated[str, typer.Argument(help="A recipe file, or the name of one that comes with the package.")]
Overrides = Annotated[list[str] | None, typer.Argument(help="Changes, as key=value; a list makes a grid.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Where results and tickets go.", show_default="runs/NAME"),
]
Store = Annotated[
    Path | None,
    typer.Option(
        help="Folder of finished stages.", envvar="TOMBOLA_STORE", show_default="~/.cache/tombola/store"
    ),
]
Data = Annotated[
    Path | None, typer.Option(help="Root of local data folders.", envvar="TOMBOLA_DATA", show_default=False)
]


@app.callback(invoke_without_command=True)
def start(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Set up what all verbs share."""
    if version:
        typer.echo(f"tombola {__version__}")
        raise typer.Exit
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")


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


def _run(recipe: str, overrides: list[str], output: Path | None, store: Path | None, report: bool) -> None:
    from tombola import console
    from tombola.running import run as run_recipe

    with console.watching() as watch:
        result = run_recipe(
            recipe, overrides, output=output, store=store, announce=console.announce, watch=watch
        )
    console.out.print(console.result_table(result))
    for line in console.matching_lines(result):
        console.out.print(line, highlight=False)
    console.say("results", result.folder / "results.json")
    if any(cell["ticket"] for cell in result.cells):
        console.say("tickets", result.folder / "tickets")
    if report:
        from tombola.report import write_report

        console.say("report", write_report(result))


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
    from tombola import console
    from tombola.report import write_report
    from tombola.transfer import transfer as run_transfer

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
    console.out.print(console.transfer_table(matrix))
    console.say("results", result.folder / "results.json")
    console.say("report", write_report(result))


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="A ticket or a model: local folder or hub id.")],
    on: Annotated[
        list[str] | None, typer.Option(help="A split, a task, or task/split; may be repeated.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="The model's task; a ticket knows its own.")] = None,
    data: Data = None,
    limit: Annotated[int | None, typer.Option(help="Use a random subset of this size.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Keep the scores as JSON.")] = None,
) -> None:
    """Score a ticket or any classifier, with standard errors.

    [bold]Example:[/bold] tombola evaluate runs/quick/tickets/imp --on validation --on reviews_tweets/test
    """
    import json

    from tombola import console
    from tombola.judging import evaluate as judge

    scores = judge(model, on=on or ["validation"], task=task, data=data, limit=limit)
    console.out.print(console.score_table(model, scores))
    if output:
        plain = {on: {name: score.as_dict() for name, score in found.items()} for on, found in scores.items()}
        output.write_text(json.dumps({"model": model, "scores": plain}, indent=1))
        console.say("scores", output)


@app.command()
def inspect(
    what: Annotated[list[str], typer.Argument(help="Tickets (folders or hub ids) or mask files.")],
    union: Annotated[Path | None, typer.Option(help="Write the union of the masks to this file.")] = None,
    intersection: Annotated[Path | None, typer.Option(help="Write the intersection to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a page with heat maps to this file.")] = None,
) -> None:
    """Show masks: sparsity by layer and matrix, and how far several agree.

    [bold]Example:[/bold] tombola inspect runs/quick/tickets/* --plot masks.html
    """
    from tombola import console
    from tombola.analysis import Comparison

    compared = Comparison.of(what)
    for name, mask in compared.masks.items():
        console.out.print(console.mask_table(name, mask))
    if len(compared.masks) > 1:
        console.out.print(console.overlap_table(compared))
    if union:
        compared.union().save(union)
        console.say("union", union)
    if intersection:
        compared.intersection().save(intersection)
        console.say("intersection", intersection)
    if plot:
        from tombola.report import write_masks

        console.say("plot", write_masks(compared, plot))


@app.command(name="list")
def list_(
    kind: Annotated[
        str | None, typer.Argument(help="models, tasks, methods, objectives, families or recipes.")
    ] = None,
) -> None:
    """List what recipes may name, with one line each.

    [bold]Example:[/bold] tombola list tasks
    """
    from tombola import console
    from tombola.catalogue import catalogue

    for title, rows in catalogue(kind).items():
        console.out.print(console.catalogue_table(title, rows))


@app.command()
def validate(
    files: Annotated[list[str], typer.Argument(help="Recipes or task files.")],
    overrides: Annotated[list[str] | None, typer.Option("--set", help="A change, as key=value.")] = None,
) -> None:
    """Check recipes and task files without running them.

    [bold]Example:[/bold] tombola validate recipes/bert_tickets/*.yaml
    """
    from tombola import console
    from tombola.catalogue import check_file

    for file in files:
        console.out.print(f"{file}: {check_file(file, overrides or [])}", soft_wrap=True, highlight=False)


def main() -> None:
    """Run the command; a user's mistake is one sentence and exit code 2."""
    try:
        app(prog_name="tombola")
    except TombolaError as error:
        typer.secho(f"tombola: {error}", fg=typer.colors.RED, err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.secho("tombola: interrupted; the same command goes on where it stopped", err=True)
        sys.exit(130)
