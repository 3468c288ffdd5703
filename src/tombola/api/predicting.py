"""Predict new texts, and write submissions for the GLUE server."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tombola.errors import TombolaError
from tombola.foundations.checksums import require_place, write_whole

if TYPE_CHECKING:
    from tombola.evaluation.evaluators import Prediction
    from tombola.evaluation.long_texts import LongTexts
    from tombola.store.stage import Progress
    from tombola.tasks import Split
    from tombola.tasks.kinds import Row
    from tombola.tickets.multitask import MultiTaskTicket
    from tombola.tickets.opening import Opened
    from tombola.tickets.predicting import Form
    from tombola.tickets.ticket import Ticket


def predict(
    model: Ticket | MultiTaskTicket | str | Path,
    rows: Path | str | Iterable[Row],
    *,
    task: str | None = None,
    max_length: int | None = None,
    stride: int | None = None,
    progress: Progress | None = None,
) -> list[Prediction]:
    """Predict labels for new texts, with a ticket or any transformers classifier.

    Args:
        model: A ticket, a multi-task ticket, a model folder, a hub id or an ONNX file with its config next to it.
        rows: A file with the layout of the task's files, with or without labels; or texts, pairs of texts, or mappings
            of the task's text columns.
        task: The model's task; tickets know theirs, but a multi-task ticket needs it.
        max_length: Truncate texts to this many tokens; by default the length that the ticket was trained with, or 128.
        stride: Read longer texts in windows that start this many tokens apart, and average the probabilities of the
            windows; by default longer texts are truncated.
        progress: Called with the number of rows done and the total.

    Returns:
        For each row, in order, a label and the probabilities; for regression, a number.
    """
    from tombola.evaluation.long_texts import LongTexts
    from tombola.tasks import unlabelled
    from tombola.tickets.opening import open_classifier

    opened, long = open_classifier(model, task, max_length), LongTexts(stride)
    known = opened.definition
    long.check(known)
    predictions = _predict_split(opened, unlabelled(known, rows), long, progress)
    long.warn()
    return predictions


def predict_file(
    model: Ticket | MultiTaskTicket | str | Path,
    source: Path | str | bytes,
    output: Path | str | None = None,
    *,
    form: Form | None = None,
    written_as: Form | None = None,
    task: str | None = None,
    max_length: int | None = None,
    stride: int | None = None,
    progress: Progress | None = None,
) -> str:
    """Predict the rows of a file, and return them with labels and probabilities.

    Args:
        model: A ticket, a multi-task ticket, a model folder, a hub id or an ONNX file with its config next to it.
        source: A CSV, TSV or JSON-lines file, or the bytes of one.
        output: The file to write; its extension sets the format. By default nothing is written.
        form: The format of bytes: csv, tsv, jsonl, or txt for one text per line; detected by default.
        written_as: The format of the result without `output`: csv, tsv or jsonl; by default that of the source.
        task: The model's task; tickets know theirs, but a multi-task ticket needs it.
        max_length: Truncate texts to this many tokens; by default the length that the ticket was trained with, or 128.
        stride: Read longer texts in windows that start this many tokens apart, and average the probabilities of the
            windows; by default longer texts are truncated.
        progress: Called with the number of rows done and the total.

    Returns:
        The text of the file: the input rows with the columns `prediction` and `probability_LABEL`; in JSON lines,
        `prediction` and `probabilities`.
    """
    from tombola.evaluation.long_texts import LongTexts
    from tombola.tickets.opening import open_classifier
    from tombola.tickets.predicting import TextFile, form_of

    if output is not None:
        written_as = form_of(Path(output))
        require_place(Path(output))
    opened, long = open_classifier(model, task, max_length), LongTexts(stride)
    known = opened.definition
    long.check(known)
    file = (
        TextFile.of(source, known, form) if isinstance(source, bytes) else TextFile.read(Path(source), known)
    )
    written_as = written_as or ("jsonl" if file.form == "txt" else file.form)
    file.check(written_as)
    predictions = _predict_split(opened, file.split, long, progress)
    long.warn()
    text = file.with_predictions(predictions, written_as)
    if output is not None:
        write_whole(Path(output), text, newline="\n")
    return text


def glue_submission(
    model: Ticket | MultiTaskTicket | str | Path,
    output: Path | str,
    *,
    task: str | None = None,
    data: Path | str | None = None,
    partial: bool = False,
    max_length: int | None = None,
    stride: int | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Predict GLUE's test sets, and write the files for its submission server.

    Args:
        model: The ticket of a GLUE task, a multi-task ticket, the folder of a run with one ticket for each task, or
            any classifier with its `task`.
        output: The folder that collects the files of all tasks.
        task: The model's task; for a multi-task ticket, by default all of them.
        data: The root of local data folders, with the test files next to the training files.
        partial: Allow test files with fewer rows than the server's, for a trial.
        max_length: Truncate texts to this many tokens; by default the length that the ticket was trained with, or 128.
        stride: Read longer texts in windows that start this many tokens apart, and average the probabilities of the
            windows; by default longer texts are truncated.
        progress: Called for each file with the number of rows done and the total.

    Returns:
        The files that were written.
    """
    from tombola.evaluation.long_texts import LongTexts
    from tombola.evaluation.submission import glue_files, write_submission
    from tombola.tasks import unlabelled
    from tombola.tasks.places import find_test_file
    from tombola.tickets.opening import open_classifier

    root = Path(data) if data is not None else None
    work = []
    for source, name in _submitted(model, task):
        opened = open_classifier(source, name, max_length)
        known = opened.definition
        work += [(opened, known, file, find_test_file(known, file.test, root)) for file in glue_files(known)]
    written, long = [], LongTexts(stride)
    for opened, known, file, path in work:
        predictions = _predict_split(opened, unlabelled(known, path, file.test), long, progress)
        written.append(write_submission(output, file, predictions, partial=partial))
    long.warn()
    return written


def _submitted(
    model: Ticket | MultiTaskTicket | str | Path, task: str | None
) -> list[tuple[Ticket | MultiTaskTicket | str | Path, str | None]]:
    """Return the models whose predictions are submitted, each with its task."""
    from tombola.results.result import RESULTS, Result
    from tombola.tickets.opening import tasks_of

    if isinstance(model, str | Path) and (Path(model) / RESULTS).is_file():
        cells = [cell for cell in Result.load(Path(model)).cells if cell.ticket]
        tickets = {cell.ticket: str(cell.recipe["task"]) for cell in cells}
        if not tickets:
            raise TombolaError(f"{model} has no tickets: run its recipe again without --no-tickets")
        for name in dict.fromkeys(tickets.values()):
            of_task = [ticket for ticket, other in tickets.items() if other == name]
            if len(of_task) > 1:
                raise TombolaError(
                    f"{model} has {len(of_task)} tickets of {name}, but only one can be submitted: name it, e.g. "
                    f"{model}/{of_task[0]}"
                )
        folders = {Path(model) / str(ticket): name for ticket, name in tickets.items()}
        return [
            submitted
            for folder, name in folders.items()
            if task is None or task == name or task in tasks_of(folder)
            for submitted in _submitted(folder, task if tasks_of(folder) else None)
        ]
    names = [task] if task is not None else tasks_of(model)
    return [(model, name) for name in names] or [(model, None)]


def _predict_split(
    opened: Opened, split: Split, long: LongTexts, progress: Progress | None
) -> list[Prediction]:
    from tombola.evaluation.evaluate import predict_split
    from tombola.models.loading import load_tokenizer

    return predict_split(
        opened.model,
        load_tokenizer(opened.folder),
        split,
        max_length=opened.max_length,
        progress=progress,
        long=long,
    )
