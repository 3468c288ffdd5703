"""tombola validate"""

from pathlib import Path
from typing import Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import verb
from tombola.errors import TombolaError


@verb()
def validate(
    screen: Screen,
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
    from tombola import api

    names = [word for word in files or () if "=" not in word or Path(word).exists()]
    overrides = [word for word in files or () if word not in names]
    if not names:
        raise TombolaError(
            "nothing to check: name recipes or task files, e.g. tombola validate my-recipe.yaml"
        )
    for file in names:
        screen.print(f"{file}: {api.validate(file, overrides)}")
