"""tombola doctor"""

import typer

from tombola.cli.console import Screen
from tombola.cli.options import Store, verb


@verb()
def doctor(screen: Screen, store: Store = None) -> None:
    """Show what runs depend on: versions, hardware, precision, store; `!` marks what needs to be mended.

    The first time, this measures both precisions, which takes some seconds. Exit code 1 if something is wrong.

    [bold]Example:[/bold] tombola doctor
    """
    from tombola import api
    from tombola.foundations.hardware.doctor import render

    checks = api.doctor(store)
    for line in render(checks):
        screen.print(line)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)
