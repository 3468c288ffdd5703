"""Verbs that tell what there is and whether a file is right: list, validate."""

from pathlib import Path
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
    from tombola.cli import console, tables
    from tombola.recipe.catalogue import catalogue

    for title, rows in catalogue(kind).items():
        console.out.print(tables.catalogue_table(title, rows))


@app.command()
def validate(
    files: Annotated[
        list[str] | None, typer.Argument(help="Recipes or task files, and key=value changes to them.")
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the recipe's JSON schema, for editors, and stop.")
    ] = False,
) -> None:
    """Check recipes and task files without running them.

    [bold]Example:[/bold] tombola validate quickstart my-recipe.yaml train.epochs=1
    """
    if schema:
        import json

        from tombola.recipe.schema import recipe_schema

        typer.echo(json.dumps(recipe_schema(), indent=1))
        return
    from tombola.cli import console
    from tombola.errors import TombolaError
    from tombola.recipe.catalogue import check_file

    names = [word for word in files or () if "=" not in word or Path(word).exists()]
    overrides = [word for word in files or () if word not in names]
    if not names:
        raise TombolaError(
            "nothing to check: name recipes or task files, e.g. tombola validate my-recipe.yaml"
        )
    for file in names:
        console.out.print(f"{file}: {check_file(file, overrides)}", soft_wrap=True, highlight=False)
