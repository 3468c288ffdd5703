"""tombola run"""

from tombola.cli.console import Screen
from tombola.cli.options import verb
from tombola.cli.outcome import show_tables
from tombola.cli.running import RunOptions, carry_out


@verb(long=True, resumes=True)
def run(screen: Screen, options: RunOptions) -> None:
    """Run a recipe: search, draw, retrain, evaluate. Finished stages are not run again.

    [bold]Example:[/bold] tombola run bert_tickets/quick draw.sparsity=0.5 seed='\\[1,2,3]'
    """
    from tombola import api

    carry_out(
        screen, options, lambda: api.plan_run(options.recipe, options.changes), lambda: api.run, show_tables
    )
