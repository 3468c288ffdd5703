"""Verbs that make tickets small and portable: shrink, export."""

from pathlib import Path
from typing import Annotated

import typer

from tombola.cli.options import app

Ticket = Annotated[Path, typer.Argument(help="A ticket's folder.", exists=True, file_okay=False)]


@app.command()
def shrink(
    ticket: Ticket,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder, or with --pack the file, to write.")
    ],
    pack: Annotated[
        bool, typer.Option("--pack", help="Weight-level masks: keep values and bits in one file.")
    ] = False,
    task: Annotated[
        str | None, typer.Option(help="Cut this task out of a ticket of several tasks first.")
    ] = None,
) -> None:
    """Cut the removed heads, neurons, FFNs and layers out of the model, check it, and measure what it gained.

    [bold]Example:[/bold] tombola shrink runs/heads/tickets/winning -o small
    """
    from tombola.cli import console, tables
    from tombola.foundations.quiet import quiet
    from tombola.tickets.multitask import as_ticket
    from tombola.tickets.shrinking import pack_ticket, shrink_ticket

    if pack:
        with quiet(), as_ticket(ticket, task) as folder:
            packed = pack_ticket(folder, output)
        console.out.print(tables.size_table(str(ticket), packed.rows))
    else:
        with quiet(), as_ticket(ticket, task) as folder:
            done = shrink_ticket(folder, output)
        console.out.print(
            tables.size_table(f"{ticket}: {done.removed} of {done.of} units removed", done.rows)
        )
        console.out.print(
            f"largest difference from the masked model: {done.max_difference:.2g}", highlight=False
        )
    console.say("written", output)


@app.command()
def export(
    model: Annotated[
        Path, typer.Argument(help="The folder of a ticket, a shrunk model or any model.", exists=True)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .onnx file to write.")],
    int8: Annotated[bool, typer.Option("--int8", help="Also write a dynamically quantised version.")] = False,
) -> None:
    """Write the model as ONNX, with any batch size and length, checked in onnxruntime.

    [bold]Example:[/bold] tombola export small -o small.onnx
    """
    from tombola.cli import console, tables
    from tombola.foundations.quiet import quiet
    from tombola.tickets.exporting import export_folder

    with quiet():
        done = export_folder(model, output, int8=int8)
    console.out.print(tables.export_table(done))
    console.say("written", done.path)
    if done.int8:
        console.say("int8", done.int8.path)
