"""Verbs that tell what there is and whether a file is right: list, validate."""

from typing import Annotated

import typer

from tombola.cli.options import app


@app.command(name="list")
def list_(
    kind: Annotated[
        str | None, typer.Argument(help="models, tasks, methods, objectives, attacks, families, recipes.")
    ] = None,
) -> None:
    """List what recipes may name, with one line each.

    [bold]Example:[/bold] tombola list tasks
    """
    from tombola import console, tables
    from tombola.catalogue import catalogue

    for title, rows in catalogue(kind).items():
        console.out.print(tables.catalogue_table(title, rows))


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
