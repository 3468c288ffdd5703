"""The table that `tombola share` prints."""

from rich.table import Table

from tombola.pipeline.share_planner import WITH, WITHOUT
from tombola.results.sharing import AVERAGE, ShareResult, Spread


def share_table(result: ShareResult, on: str) -> Table:
    """Tasks down; the score without and with tickets, the difference, and what each task's mask keeps."""
    rows = result.rows(on)
    seeds = len({cell["seed"] for cell in result.cells})
    caption = f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
    table = Table(
        title=f"{result.content['name']}, {on}",
        caption=caption,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("task")
    table.add_column("metric")
    for column in (WITHOUT, WITH, "difference", "remaining"):
        table.add_column(column, justify="right")
    for row in rows:
        if row.task == AVERAGE:
            table.add_section()
        table.add_row(
            row.task,
            row.metric,
            _points(row.without),
            _points(row.shared),
            _points(row.difference, "+"),
            f"{row.remaining:.1%}",
        )
    return table


def _points(value: Spread, sign: str = "") -> str:
    spread = "" if value.std is None else f" ± {100 * value.std:.1f}"
    return f"{100 * value.mean:{sign}.1f}{spread}"
