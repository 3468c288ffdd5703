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
    files: Annotated[list[str] | None, typer.Argument(help="Recipes or task files.")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="A change, as key=value.")] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the recipe's JSON schema, for editors, and stop.")
    ] = False,
) -> None:
    """Check recipes and task files without running them.

    [bold]Example:[/bold] tombola validate recipes/bert_tickets/*.yaml
    """
    if schema:
        import json

        from tombola.schema import recipe_schema

        typer.echo(json.dumps(recipe_schema(), indent=1))
        return
    from tombola import console
    from tombola.catalogue import check_file
    from tombola.errors import TombolaError

    if not files:
        raise TombolaError(
            "nothing to check: name recipes or task files, e.g. tombola validate my-recipe.yaml"
        )
    for file in files:
        console.out.print(f"{file}: {check_file(file, overrides or [])}", soft_wrap=True, highlight=False)
