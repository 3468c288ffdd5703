"""tombola report"""

from pathlib import Path
from typing import Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import Store, verb


@verb()
def report(
    screen: Screen,
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="Folders that run, study, transfer, share or attack wrote; several go on one page."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    store: Store = None,
) -> None:
    """Write one self-contained page: tables, curves, maps, attacked sentences, the recipe.

    [bold]Example:[/bold] tombola report runs/bert_tickets-quick -o report.html
    """
    from tombola import api

    screen.wrote("report", api.report(folders, output, store=store))
