"""tombola task: init"""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import app, verb

task_app = typer.Typer(help="Make task files, which describe your own data.", no_args_is_help=True)
app.add_typer(task_app, name="task")


@verb(to=task_app)
def init(
    screen: Screen,
    data: Annotated[
        Path,
        typer.Argument(
            help="A .csv, .tsv, .jsonl, .json or .parquet file, or a folder with train.csv, test.csv …"
        ),
    ],
    text: Annotated[
        list[str] | None,
        typer.Option(help="The text column; give it twice for pairs.", show_default="inferred"),
    ] = None,
    label: Annotated[str | None, typer.Option(help="The label column.", show_default="inferred")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The task file, in the data's folder or one above it.",
            show_default="DATA.task.yaml",
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(help="The language of the texts, such as de.", show_default="inferred: en or und"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing task file.")] = False,
) -> None:
    """Write a commented task file for a data file, inferring columns, labels, splits, delimiter and encoding.

    [bold]Example:[/bold] tombola task init reviews.csv --label rating
    """
    from tombola import api

    task = api.init_task(data, output, text=tuple(text or ()), label=label, language=language, force=force)
    for note in task.notes:
        screen.print(note)
    screen.wrote("task", task.path)
    screen.print(f"next     tombola validate {quote(str(task.path))} --data")
