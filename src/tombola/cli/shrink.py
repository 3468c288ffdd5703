"""tombola shrink"""

from pathlib import Path
from typing import Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import verb
from tombola.errors import TombolaError


@verb(long=True)
def shrink(
    screen: Screen,
    ticket: Annotated[Path, typer.Argument(help="A ticket's folder.", exists=True, file_okay=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder, or with --pack the file, to write.")
    ],
    pack: Annotated[
        bool, typer.Option("--pack", help="For masks of single weights: pack values and bits into one file.")
    ] = False,
    convert_pruned_heads: Annotated[
        bool,
        typer.Option(
            "--convert-pruned-heads",
            help="Convert a model with heads pruned by transformers 4, which transformers 5 cannot read.",
        ),
    ] = False,
    task: Annotated[str | None, typer.Option(help="Cut this task out of a multi-task ticket first.")] = None,
) -> None:
    """Cut the removed heads, neurons, FFNs and layers out of the model, check the result, and measure the gain.

    [bold]Example:[/bold] tombola shrink runs/heads/tickets/ticket -o small
    """
    from tombola import api
    from tombola.cli import tables
    from tombola.foundations.quiet import quiet

    if convert_pruned_heads and (pack or task):
        raise TombolaError("--convert-pruned-heads takes a model folder, without --pack and --task")
    with (
        screen.watch("loading the model") as watcher,
        watcher.job("shrink", f"{'pack' if pack else 'shrink'} {ticket.name}"),
        quiet(),
    ):
        if convert_pruned_heads:
            shape = api.convert_pruned_heads(ticket, output)
        elif pack:
            packed = api.pack(ticket, output, task=task)
        else:
            shrunk = api.shrink(ticket, output, task=task)
    if convert_pruned_heads:
        heads = [len(layer.heads or ()) for layer in shape.layers]
        screen.print(f"heads left in each layer: {', '.join(map(str, heads))}")
        screen.wrote("written", output)
        screen.finish(heads=heads)
        return
    if pack:
        title, rows = str(ticket), packed.rows
    else:
        title, rows = f"{ticket}: {shrunk.removed} of {shrunk.of} units removed", shrunk.rows
    screen.print(tables.size_table(title, rows))
    if not pack:
        screen.print(f"largest difference from the masked model: {shrunk.max_difference:.2g}")
    screen.wrote("written", output)
    screen.finish(sizes=[{**row.model_dump(mode="json"), "ratio": row.ratio} for row in rows])
