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

StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        help="Folder of finished stages.",
        envvar="TOMBOLA_STORE",
        show_default="~/.cache/tombola/store",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Where results and tickets go.", show_default="runs/NAME"),
]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="Root of local data folders.", envvar="TOMBOLA_DATA", show_default=False),
]


@app.callback(invoke_without_command=True)
def start(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Set up what all verbs share."""
    if version:
        typer.echo(f"tombola {__version__}")
        raise typer.Exit
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


@app.command()
def quickstart(output: OutputOption = Path("quickstart"), store: StoreOption = None) -> None:
    """Draw a first ticket with nothing but the package: its own model, its own data, minutes on two cores.

    [bold]Example:[/bold] tombola quickstart
    """
    _run("quickstart", [], output, store, report=True)


@app.command()
def run(
    recipe: Annotated[
        str, typer.Argument(help="A recipe file, or the name of one that comes with the package.")
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Changes, as key=value; a list makes a grid.")
    ] = None,
    output: OutputOption = None,
    store: StoreOption = None,
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
    console.out.print(f"results  {result.folder / 'results.json'}", soft_wrap=True)
    if any(cell["ticket"] for cell in result.cells):
        console.out.print(f"tickets  {result.folder / 'tickets'}", soft_wrap=True)
    if report:
        from tombola.report import write_report

        console.out.print(f"report   {write_report(result)}", soft_wrap=True)


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="A ticket or a model: local folder or hub id.")],
    on: Annotated[
        list[str] | None, typer.Option("--on", help="A split, a task, or task/split; may be repeated.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="The model's task; a ticket knows its own.")] = None,
    data: DataOption = None,
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
        plain = {
            target: {name: s.as_dict() for name, s in found.items()}
            for target, found in scores.items()
        }
        output.write_text(json.dumps({"model": model, "scores": plain}, indent=1))


@app.command()
def inspect(
    what: Annotated[str, typer.Argument(help="A ticket's folder or hub id, or a mask file.")],
    against: Annotated[
        list[str] | None, typer.Option(help="Another ticket or mask to compare with; may be repeated.")
    ] = None,
) -> None:
    """Show a mask: its sparsity by layer and matrix, and its overlap with others.

    [bold]Example:[/bold] tombola inspect runs/quick/tickets/imp --against runs/quick/tickets/random
    """
    from tombola import console
    from tombola.judging import open_mask

    mask = open_mask(what)
    console.out.print(console.mask_table(what, mask))
    for other in against or []:
        console.out.print(
            f"overlap with {other}: {mask.overlap(open_mask(other)):.4f} (Jaccard, kept weights)",
            soft_wrap=True,
        )


@app.command(name="list")
def list_(
    kind: Annotated[
        str | None, typer.Argument(help="tasks, methods, families, models, objectives or recipes.")
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
        console.out.print(f"{file}: {check_file(file, overrides or [])}", soft_wrap=True)


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
