"""tombola doctor"""

import typer

from tombola.cli.console import Screen
from tombola.cli.options import Store, verb


@verb()
def doctor(screen: Screen, store: Store = None) -> None:
    """Check what runs depend on: versions, hardware, precision, store; `!` marks problems.

    The first call measures both precisions, which takes a few seconds. Exits with code 1 if something is wrong.

    [bold]Example:[/bold] tombola doctor
    """
    from tombola import api
    from tombola.foundations.hardware.doctor import render

    checks = api.doctor(store)
    for line in render(checks):
        screen.print(line)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)
