"""tombola list"""

from typing import Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import verb


@verb("list")
def list_(
    screen: Screen,
    kind: Annotated[
        str | None, typer.Argument(help="One list, such as tasks, attacks or recipes; all by default.")
    ] = None,
) -> None:
    """List what recipes may name, with one line each.

    [bold]Example:[/bold] tombola list tasks
    """
    from tombola import api
    from tombola.cli import tables

    for title, rows in api.catalogue(kind).items():
        screen.print(tables.catalogue_table(title, rows))
