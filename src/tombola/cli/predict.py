"""tombola predict"""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from tombola.cli.console import Screen
from tombola.cli.options import DATA_FOLDER, MaxLength, Model, Stride, TaskName, verb
from tombola.errors import TombolaError


@verb(long=True)
def predict(
    screen: Screen,
    model: Model,
    file: Annotated[
        str | None, typer.Argument(help="A CSV, TSV or JSON-lines file; - reads standard input.")
    ] = None,
    task: TaskName = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The .csv, .tsv or .jsonl file to write; with --glue a folder.",
            show_default="stdout",
        ),
    ] = None,
    form: Annotated[
        Literal["csv", "tsv", "jsonl", "txt"] | None,
        typer.Option("--format", help="Format of standard input, if not detected; txt is one text per line."),
    ] = None,
    glue: Annotated[
        bool, typer.Option("--glue", help="Predict GLUE's test sets for its server; takes no FILE.")
    ] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="With --glue: accept test files with fewer rows, to try it out.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="With --glue: root of local data folders.", envvar=DATA_FOLDER, show_default=False),
    ] = None,
    max_length: MaxLength = None,
    stride: Stride = None,
) -> None:
    """Predict labels for new texts: write the same rows with a label and probabilities, or a number.

    [bold]Example:[/bold] tombola predict runs/bert_tickets-quick/tickets/imp_sparsity-0.5 new.csv -o labelled.csv
    """
    from tombola import api
    from tombola.evaluation.submission import missing_files

    if glue:
        if file is not None:
            raise TombolaError("--glue reads the test sets of the model's tasks: leave out FILE")
        if output is None:
            raise TombolaError("--glue writes a file for each test set: set the folder with -o")
        with (
            screen.watch("loading the model") as watcher,
            watcher.job("predict", "predict GLUE's test sets") as progress,
        ):
            written = api.glue_submission(
                model,
                output,
                task=task,
                data=data,
                partial=partial,
                max_length=max_length,
                stride=stride,
                progress=progress,
            )
        for path in written:
            screen.wrote(path.stem, path)
        if missing := missing_files(output):
            screen.print(f"{output} still lacks {', '.join(missing)}")
        screen.finish(missing=missing)
        return
    if file is None:
        raise TombolaError("predict takes a FILE of texts, or - for standard input, or --glue")
    if partial:
        raise TombolaError("--partial only works with --glue: leave it out")
    if data is not None and str(data) != os.environ.get(DATA_FOLDER):
        raise TombolaError("--data only works with --glue: leave it out")
    if form is not None and file != "-":
        raise TombolaError(
            "--format is only for standard input; the format of a file follows from its extension"
        )
    source = sys.stdin.buffer.read() if file == "-" else Path(file)
    with (
        screen.watch("loading the model") as watcher,
        watcher.job("predict", f"predict {'standard input' if file == '-' else Path(file).name}") as progress,
    ):
        text = api.predict_file(
            model,
            source,
            output,
            form=form,
            written_as="jsonl" if screen.events is not None else None,
            task=task,
            max_length=max_length,
            stride=stride,
            progress=progress,
        )
    if output is not None:
        screen.wrote("labelled", output)
    elif screen.events is not None:
        screen.send_rows("predicted", map(json.loads, text.split("\n")[:-1]))
    elif not screen.muted:
        sys.stdout.write(text)
    screen.finish()
