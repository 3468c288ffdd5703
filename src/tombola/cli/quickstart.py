"""tombola quickstart"""

from pathlib import Path
from shlex import quote

from tombola.cli.console import Screen
from tombola.cli.options import Output, Store, verb
from tombola.cli.outcome import close, show_tables, write_page

NEXT = {
    "tombola inspect {ticket}": "where it is sparse",
    "tombola run quickstart task=my-task.yaml": "your own data",
    "tombola list recipes": "the published systems",
}
"""What to try after the quick start, and what for."""


@verb(long=True)
def quickstart(screen: Screen, output: Output = Path("quickstart"), store: Store = None) -> None:
    """Draw a first ticket with nothing but the package: its own model, its own data, minutes on two cores.

    [bold]Example:[/bold] tombola quickstart
    """
    from tombola import api

    with screen.watch("planning") as watcher:
        result = api.quickstart(output=output or "quickstart", store=store, watcher=watcher)
        page = write_page(result, store)
    ticket = next(cell.ticket for cell in result.cells if cell.ticket)
    show_tables(screen, result)
    close(screen, result, page)
    screen.print("\nThree things to try next:")
    commands = {line.format(ticket=quote(str(result.folder / ticket))): why for line, why in NEXT.items()}
    width = max(map(len, commands))
    for line, why in commands.items():
        screen.print(f"  {line:<{width}}   # {why}")
