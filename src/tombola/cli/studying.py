"""The verb for many tickets: study."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tombola.cli.options import Output, Overrides, Recipe, Store, app

if TYPE_CHECKING:
    from tombola.pipeline.engines import Local, Ray
    from tombola.pipeline.studying import Planned, Study


@app.command()
def study(
    file: Recipe,
    overrides: Overrides = None,
    output: Output = None,
    store: Store = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan and its cost; run nothing.")
    ] = False,
    engine: Annotated[
        Literal["local", "ray"] | None,
        typer.Option(help="Who runs it.", show_default="as in the file, else local"),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes on this machine.")] = None,
    address: Annotated[str | None, typer.Option(help="A Ray cluster's address, or auto.")] = None,
    table: Annotated[
        Path | None, typer.Option(help="Write the statistics to a .csv, .json or .parquet file.")
    ] = None,
    tickets: Annotated[bool, typer.Option(help="Also write a ticket for each cell.")] = False,
    report: Annotated[bool, typer.Option(help="Also write report.html.")] = True,
) -> None:
    """Run a grid of recipes: what cells share runs once, and what fails does not stop the rest.

    The same command goes on where it stopped: what is finished is not run again.

    [bold]Example:[/bold] tombola study bert_tickets/quick seed=\\[1,2,3] --workers 2 --table study.csv
    """
    from tombola.cli.progress import LiveTable
    from tombola.pipeline.studying import plan_study
    from tombola.pipeline.studying import study as run_study

    planned = plan_study(file, overrides or [])
    chosen = _engine(planned, engine, workers, address)
    if dry_run:
        _show_plan(planned, store)
        return
    from tombola.cli import console

    with LiveTable() as watcher:
        found = run_study(
            planned,
            engine=chosen,
            output=output,
            store=store,
            tickets=tickets,
            announce=console.announce,
            watcher=watcher,
        )
    _show(found, table, report, store)


def _engine(planned: "Planned", name: str | None, workers: int | None, address: str | None) -> "Local | Ray":
    """The file's engine, with what the command says laid over."""
    from tombola.foundations.settings import checked
    from tombola.pipeline.studying import StudySettings

    said = planned.settings.engine
    own = said.model_dump(exclude_defaults=True) if name in (None, said.kind) else {}
    raw = {**own, "kind": name or ("ray" if address else said.kind)}
    raw |= {key: value for key, value in (("workers", workers), ("address", address)) if value is not None}
    return checked(StudySettings, {"recipes": [{}], "engine": raw}).engine


def _show_plan(planned: "Planned", store: str | None) -> None:
    from rich.table import Table

    from tombola.cli import console
    from tombola.foundations.caching import run_cache
    from tombola.pipeline.costs import estimate
    from tombola.store.store import Store as OpenStore

    with run_cache():
        costs = estimate([one.stages() for one in planned.plans], planned.stages, OpenStore(store))
    shown = Table(title=f"{planned.settings.name}: {len(planned.plans)} cells", title_justify="left")
    for column in ("stage", "asked for", "shared", "finished", "to run", "training steps", "estimated"):
        shown.add_column(column, justify="left" if column == "stage" else "right")
    for cost in costs:
        shown.add_row(
            cost.kind,
            f"{cost.asked:,}",
            f"{cost.asked - cost.stages:,}",
            f"{cost.finished:,}",
            f"{cost.stages - cost.finished:,}",
            f"{cost.steps:,}" if cost.asked_steps else "",
            "unknown" if cost.seconds is None else _duration(cost.seconds),
        )
    console.out.print(shown)
    asked = sum(cost.asked_steps for cost in costs)
    left = sum(cost.steps for cost in costs)
    seconds = sum(cost.seconds or 0 for cost in costs)
    share = f", {left / asked:.0%} of what a script per cell would take" if asked else ""
    unknown = [cost.kind for cost in costs if cost.seconds is None]
    besides = f", besides {', '.join(unknown)}" if unknown else ""
    console.out.print(f"{left:,} training steps{share}; about {_duration(seconds)} on one worker{besides}")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _show(found: "Study", table: Path | None, report: bool, store: str | None) -> None:
    from tombola.cli import console, tables
    from tombola.results.export import write_table

    if found.cells:
        console.out.print(tables.result_table(found))
        for line in tables.matching_lines(found):
            console.out.print(line, highlight=False)
        if table:
            console.say("table", write_table(found.rows(), table))
        if report:
            from tombola.report import write_report

            console.say("report", write_report(found, store=store))
    console.say("results", found.folder / "results.json")
    for failure in found.failures:
        console.err.print(f"[red]failed[/red] {failure['label']}: {failure['reason']}", highlight=False)
        cells = f"{len(failure['cells'])} cells are missing for it"
        console.err.print(f"       {cells}; its log: {failure['log']}", soft_wrap=True, highlight=False)
    if found.failures:
        raise typer.Exit(1)
