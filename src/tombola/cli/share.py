"""tombola share"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tombola.cli.console import Screen
from tombola.cli.options import verb
from tombola.cli.running import RunOptions, carry_out

if TYPE_CHECKING:
    from tombola.results.result import Result


@verb(long=True, resumes=True)
def share(screen: Screen, options: RunOptions) -> None:
    """Train several tasks on one encoder, each under its own ticket, and compare with sharing everything.

    To cut one task out of the result and shrink it: tombola shrink TICKET --task NAME -o DIR

    [bold]Example:[/bold] tombola share super_tickets/mtl_quick seed='\\[1,2,3]'
    """
    from tombola import api

    carry_out(
        screen, options, lambda: api.plan_share(options.recipe, options.changes), lambda: api.share, _show
    )


def _show(screen: Screen, result: Result) -> None:
    from tombola.cli import tables

    for on in (name for name in result.datasets if result.sharing(name)):
        screen.print(tables.share_table(result, on))
