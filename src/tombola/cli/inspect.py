"""tombola inspect"""

from pathlib import Path
from typing import Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import verb


@verb()
def inspect(
    screen: Screen,
    what: Annotated[list[str], typer.Argument(help="Tickets (folders or hub ids) or mask files.")],
    task: Annotated[str | None, typer.Option(help="One task of a multi-task ticket; all by default.")] = None,
    union: Annotated[Path | None, typer.Option(help="Write the union of the masks to this file.")] = None,
    intersection: Annotated[Path | None, typer.Option(help="Write the intersection to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a page with heat maps to this file.")] = None,
) -> None:
    """Show masks: their sparsity by layer and matrix, and the overlap between several.

    [bold]Example:[/bold] tombola inspect runs/bert_tickets-quick/tickets/* --plot masks.html
    """
    from tombola import api
    from tombola.cli import tables

    compared = api.inspect(*what, task=task)
    for name, mask in compared.masks.items():
        screen.print(tables.mask_table(name, mask))
    if len(compared.masks) > 1:
        screen.print(tables.overlap_table(compared))
    if union:
        compared.union().save(union)
        screen.wrote("union", union)
    if intersection:
        compared.intersection().save(intersection)
        screen.wrote("intersection", intersection)
    if plot:
        from tombola.report.masks import write_masks

        screen.wrote("plot", write_masks(compared, plot))
