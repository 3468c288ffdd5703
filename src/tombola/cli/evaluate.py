"""tombola evaluate"""

import json
from pathlib import Path
from typing import Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import Data, MaxLength, Model, Stride, TaskName, verb
from tombola.foundations.checksums import require_place, write_whole


@verb(long=True)
def evaluate(
    screen: Screen,
    model: Model,
    on: Annotated[
        list[str] | None,
        typer.Option(
            help="A split (or split+typos), a task, or task/split; may be repeated.",
            show_default="validation",
        ),
    ] = None,
    task: TaskName = None,
    data: Data = None,
    limit: Annotated[int | None, typer.Option(help="Use a random subset of this size.")] = None,
    max_length: MaxLength = None,
    stride: Stride = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Save the scores as JSON.")] = None,
) -> None:
    """Score a ticket or any classifier, with standard errors; a multi-task ticket on all its tasks.

    [bold]Example:[/bold] tombola evaluate runs/bert_tickets-quick/tickets/imp_sparsity-0.5 --on test
    """
    from tombola import api
    from tombola.cli import tables

    if output:
        require_place(output)
    with (
        screen.watch("loading the model") as watcher,
        watcher.job("evaluate", f"evaluate {Path(model).name}") as progress,
    ):
        scores = api.evaluate(
            model,
            on=on or ["validation"],
            task=task,
            data=data,
            limit=limit,
            max_length=max_length,
            stride=stride,
            progress=progress,
        )
    screen.print(tables.score_table(model, scores))
    plain = {
        on: {name: score.as_dict() for name, score in by_metric.items()} for on, by_metric in scores.items()
    }
    if output:
        write_whole(output, json.dumps({"model": model, "scores": plain}, indent=1))
        screen.wrote("scores", output)
    screen.finish(model=model, scores=plain)
