"""tombola import"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tombola.cli.console import Screen
from tombola.cli.options import verb


@verb("import")
def import_mask(
    screen: Screen,
    source: Annotated[
        list[Path],
        typer.Argument(help="A mask.pt or a folder of masks; or lists of removed heads and FFNs."),
    ],
    kind: Annotated[
        Literal["bert_tickets", "srnets", "super_tickets"],
        typer.Option(
            "--from",
            metavar="SYSTEM",
            help="The code that wrote the mask: bert_tickets, srnets or super_tickets.",
        ),
    ],
    model: Annotated[str, typer.Option(help="The pre-trained model that the mask belongs to.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the mask.")],
    task: Annotated[str | None, typer.Option(help="The task whose head is masked too.")] = None,
    threshold: Annotated[
        float | None, typer.Option(help="For files of scores: keep units above this value.")
    ] = None,
    keep_head: Annotated[bool, typer.Option(help="Import the mask of the task head.")] = True,
    entry: Annotated[str | None, typer.Option(help="For lists of several tasks: the one to import.")] = None,
    first: Annotated[int, typer.Option(help="Number of the first layer and head in the lists.")] = 0,
) -> None:
    """Convert a mask of a paper's published code for `search: {method: given}`, without running any code in it.

    [bold]Example:[/bold] tombola import mask.pt --from bert_tickets --model google-bert/bert-base-uncased -o mask
    """
    from tombola import api

    mask = api.import_mask(
        source,
        model,
        kind,
        output,
        task=task,
        threshold=threshold,
        keep_head=keep_head,
        entry=entry,
        first=first,
    )
    screen.print(f"{mask.removed:,} of {mask.count:,} units ({mask.units.granularity}) are removed")
    screen.wrote("mask", output)
