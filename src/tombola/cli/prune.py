"""tombola prune"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tombola.cli.console import Screen
from tombola.cli.options import Data, verb


@verb(long=True, resumes=True)
def prune(
    screen: Screen,
    model: Annotated[str, typer.Argument(help="A model: folder or hub id.")],
    task: Annotated[str, typer.Argument(help="The task to calibrate on.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    settings: Annotated[
        list[str] | None, typer.Argument(help="Settings of the method, as key=value.")
    ] = None,
    method: Annotated[str, typer.Option(help="wanda, ria, sparsegpt or magnitude.")] = "wanda",
    sparsity: Annotated[
        float | None, typer.Option(help="Share of weights to remove from each matrix.", show_default="0.5")
    ] = None,
    pattern: Annotated[
        str | None, typer.Option(help="2:4 instead of a sparsity, or blocks such as 16x16.")
    ] = None,
    scope: Annotated[
        Literal["local", "row"] | None,
        typer.Option(help="Rank a whole matrix, or each output row.", show_default="as published"),
    ] = None,
    examples: Annotated[int, typer.Option(help="Training examples to calibrate on.", min=1)] = 128,
    max_length: Annotated[int, typer.Option(help="Truncate examples to this many tokens.", min=1)] = 128,
    data: Data = None,
    seed: Annotated[int, typer.Option(help="Seed that selects the examples.", min=0)] = 1,
    device: Annotated[str, typer.Option(help="Where layers run: cpu, or an accelerator.")] = "cpu",
) -> None:
    """Prune a whole model in one shot, one layer at a time, so that even models larger than memory fit.

    [bold]Example:[/bold] tombola prune my-llama wikitext2 --method wanda --pattern 2:4 -o pruned
    """
    from tombola import api
    from tombola.recipe.reading import load_recipe

    with (
        screen.watch("reading the model") as watcher,
        watcher.job("prune", f"prune {model} with {method}") as progress,
    ):
        chosen: dict[str, Any] = load_recipe({}, settings or [])
        found = api.prune(
            model,
            task,
            output,
            method=method,
            sparsity=sparsity,
            pattern=pattern,
            scope=scope,
            settings=chosen,
            examples=examples,
            max_length=max_length,
            data=data,
            seed=seed,
            device=device,
            progress=lambda done, steps: progress(done, steps, {}),
        )
    mask, gigabyte = found.mask, 1e9
    screen.print(
        f"{mask.removed:,} of {mask.count:,} weights removed ({mask.sparsity:.2%}) in {found.seconds:,.0f} s; at most "
        f"{found.peak_memory / gigabyte:.2f} GB of memory for a model of {found.model_bytes / gigabyte:.2f} GB"
    )
    screen.wrote("model", found.folder)
    screen.finish(sparsity=mask.sparsity, seconds=found.seconds, peak_memory=found.peak_memory)
