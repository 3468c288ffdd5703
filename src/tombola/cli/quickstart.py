"""tombola quickstart"""

from pathlib import Path

from tombola.cli.console import Screen
from tombola.cli.options import Output, Store, verb
from tombola.cli.outcome import show_result, write_page

NEXT = """
Three things to try next:
  tombola inspect {ticket}   # where the ticket is sparse
  tombola run quickstart task=my-task.yaml     # your own data: docs/howto/data.md
  tombola list recipes                         # the published systems and their recipes
"""


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
    show_result(screen, result, page)
    screen.print(NEXT.format(ticket=repr(str(result.folder / ticket))).rstrip())
