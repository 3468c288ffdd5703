"""tombola report"""

import webbrowser
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
            help="Output folders of run, study, transfer, share or attack; several share one page."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    store: Store = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write one self-contained page: tables, curves, maps, attacked sentences, the recipe.

    [bold]Example:[/bold] tombola report runs/bert_tickets-quick -o report.html
    """
    from tombola import api

    page = api.report(folders, output, store=store)
    screen.wrote("report", page)
    if open_page and not webbrowser.open(page.resolve().as_uri()):
        screen.complain(f"no browser was found: open {page} yourself")
