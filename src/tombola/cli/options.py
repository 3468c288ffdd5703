"""The command itself and the arguments that several verbs share."""

import os
from pathlib import Path
from typing import Annotated

import typer

from tombola.recipe.builtin import recipe_names
from tombola.version import __version__

app = typer.Typer(
    name="tombola",
    help="Draw sparse and robust winning tickets from pre-trained language models, and ship them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _named_recipes(incomplete: str) -> list[str]:
    return [name for name in recipe_names() if name.startswith(incomplete)]


Recipe = Annotated[
    str,
    typer.Argument(
        help="A recipe file, or the name of one that comes with the package.", autocompletion=_named_recipes
    ),
]
Overrides = Annotated[list[str] | None, typer.Argument(help="Changes, as key=value; a list makes a grid.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Where results and tickets go.", show_default="runs/NAME"),
]
Store = Annotated[
    str | None,
    typer.Option(
        help="Finished stages: a folder, or a URL such as s3://bucket/store.",
        envvar="TOMBOLA_STORE",
        show_default="~/.cache/tombola/store",
    ),
]
Data = Annotated[
    Path | None, typer.Option(help="Root of local data folders.", envvar="TOMBOLA_DATA", show_default=False)
]
Model = Annotated[str, typer.Argument(help="A ticket or a model: local folder or hub id.")]
TaskName = Annotated[str | None, typer.Option(help="The model's task; a ticket knows its own.")]


@app.callback(invoke_without_command=True)
def start(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Set up what all verbs share."""
    if version:
        typer.echo(f"tombola {__version__}")
        raise typer.Exit
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
