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
        list[str] | None, typer.Argument(help="Recipes or task files, and key=value changes to recipes.")
    ] = None,
    data: Annotated[
        bool,
        typer.Option("--data", help="Also read the data, the model's config and tokenizer, and trackers."),
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of recipes, for editors, and exit.")
    ] = False,
) -> None:
    """Check recipes and task files without running them.

    With --data, also count rows and labels, duplicates, texts that are in the training data too, and texts longer than
    the model's input.

    [bold]Example:[/bold] tombola validate my-recipe.yaml train.epochs=1 --data
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
        for line in f"{file}: {api.validate(file, overrides, data=data)}".splitlines():
            screen.print(line)
