"""tombola export"""

from pathlib import Path
from typing import Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import verb


@verb(long=True)
def export(
    screen: Screen,
    model: Annotated[
        Path, typer.Argument(help="The folder of a ticket, a shrunk model or any model.", exists=True)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .onnx file, or a folder, to write.")],
    int8: Annotated[bool, typer.Option("--int8", help="Also write a dynamically quantised version.")] = False,
    task: Annotated[str | None, typer.Option(help="The task of a multi-task ticket.")] = None,
) -> None:
    """Export a model to ONNX for any batch size and length, and check it in onnxruntime.

    A folder also gets the config and the tokenizer, so that predict, evaluate and attack can open it.

    [bold]Example:[/bold] tombola export small -o small.onnx
    """
    from tombola import api
    from tombola.cli import tables
    from tombola.foundations.quiet import quiet

    with (
        screen.watch("loading the model") as watcher,
        watcher.job("export", f"export {model.name}"),
        quiet(),
    ):
        done = api.export(model, output, int8=int8, task=task)
    screen.print(tables.export_table(done))
    screen.wrote("written", done.path)
    if done.int8:
        screen.wrote("int8", done.int8.path)
    screen.finish(export=done.model_dump(mode="json"))
