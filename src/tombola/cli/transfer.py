"""tombola transfer"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import verb
from tombola.cli.running import RunOptions, carry_out

if TYPE_CHECKING:
    from tombola.results.result import Result


@verb(long=True, resumes=True)
def transfer(
    screen: Screen,
    options: RunOptions,
    source: Annotated[
        list[str] | None, typer.Option(help="A task to search for a mask on; may be repeated.")
    ] = None,
    target: Annotated[list[str] | None, typer.Option(help="A task to train on; may be repeated.")] = None,
) -> None:
    """Train tasks under the masks of other tasks, and compare with dense training.

    [bold]Example:[/bold] tombola transfer bert_tickets/transfer --source sst2 --source wikitext --target rte
    """
    from tombola import api

    carry_out(
        screen,
        options,
        lambda: api.plan_transfer(options.recipe, options.changes, source or (), target or ()),
        lambda: api.transfer,
        _show,
    )


def _show(screen: Screen, result: Result) -> None:
    from tombola.cli import tables

    matrix = result.transfer()
    if matrix is not None:
        screen.print(tables.transfer_table(matrix))
