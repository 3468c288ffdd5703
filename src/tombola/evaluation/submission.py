"""Submission files for the GLUE server: their names, formats and rows. (Wang et al. 2019)"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tombola.errors import DataError, UnknownName
from tombola.evaluation.evaluators import Prediction
from tombola.foundations.checksums import write_whole
from tombola.tasks import Task


@dataclass(frozen=True)
class GlueFile:
    """A file of a submission: its task, its format and its number of rows."""

    name: str
    task: str
    test: str
    """The test file with the rows to predict."""
    rows: int
    written_as: Literal["number", "name", "score"] = "number"

    def value(self, prediction: Prediction, task: Task) -> str:
        """Return a prediction in the server's format: a label's number or name, or a score from 0 to 5."""
        if self.written_as == "score":
            assert isinstance(prediction.label, float)
            return f"{min(max(prediction.label, 0.0), 5.0):.3f}"
        label = str(prediction.label)
        return label if self.written_as == "name" else str((task.labels or []).index(label))


GLUE = {
    file.name: file
    for file in (
        GlueFile("CoLA.tsv", "cola", "test.tsv", 1063),
        GlueFile("SST-2.tsv", "sst2", "test.tsv", 1821),
        GlueFile("MRPC.tsv", "mrpc", "test.tsv", 1725),
        GlueFile("STS-B.tsv", "stsb", "test.tsv", 1379, "score"),
        GlueFile("QQP.tsv", "qqp", "test.tsv", 390965),
        GlueFile("MNLI-m.tsv", "mnli", "test_matched.tsv", 9796, "name"),
        GlueFile("MNLI-mm.tsv", "mnli", "test_mismatched.tsv", 9847, "name"),
        GlueFile("AX.tsv", "mnli", "diagnostic.tsv", 1104, "name"),
        GlueFile("QNLI.tsv", "qnli", "test.tsv", 5463, "name"),
        GlueFile("RTE.tsv", "rte", "test.tsv", 3000, "name"),
        GlueFile("WNLI.tsv", "wnli", "test.tsv", 146),
    )
}
"""The eleven files of a submission, by name."""


def glue_files(task: Task) -> list[GlueFile]:
    """Return the files for a task's model: three for MNLI, one for any other task."""
    files = [file for file in GLUE.values() if file.task == task.name]
    if not files:
        raise UnknownName("task of GLUE", task.name, {file.task for file in GLUE.values()})
    return files


def write_submission(
    folder: Path | str, file: GlueFile, predictions: Sequence[Prediction], *, partial: bool = False
) -> Path:
    """Write one file of a submission.

    Args:
        folder: The folder of the submission; zip it when all eleven files are there.
        file: The file to write, e.g. `GLUE["MNLI-m.tsv"]`.
        predictions: The predictions for the test file's rows, in order.
        partial: Allow a different number of rows than the test set has, for tests.
    """
    if not partial and len(predictions) != file.rows:
        raise DataError(
            f"{file.name}: {len(predictions)} predictions, but the test set ({file.test}) has {file.rows} rows, and "
            "the server requires exactly that number."
        )
    task, path = Task.named(file.task), Path(folder) / file.name
    rows = (f"{number}\t{file.value(prediction, task)}" for number, prediction in enumerate(predictions))
    write_whole(path, "\n".join(["index\tprediction", *rows, ""]))
    return path


def missing_files(folder: Path | str) -> list[str]:
    """Return the files that a submission in this folder still lacks."""
    return [name for name in GLUE if not (Path(folder) / name).is_file()]
