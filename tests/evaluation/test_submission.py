"""GLUE's files as its server reads them."""

from pathlib import Path

import pytest

from tombola.errors import DataError, UnknownName
from tombola.evaluation.evaluators import Prediction
from tombola.evaluation.submission import GLUE, glue_files, missing_files, write_submission
from tombola.tasks import Task


def test_eleven_files_of_nine_tasks() -> None:
    names = ["CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI-m", "MNLI-mm", "AX", "QNLI", "RTE", "WNLI"]
    assert sorted(GLUE) == sorted(f"{name}.tsv" for name in names)
    assert [file.name for file in glue_files(Task.named("mnli"))] == ["MNLI-m.tsv", "MNLI-mm.tsv", "AX.tsv"]
    assert [file.rows for file in glue_files(Task.named("rte"))] == [3000]
    for file in GLUE.values():
        assert (file.written_as == "score") == (Task.named(file.task).kind == "regression")
    with pytest.raises(UnknownName, match="unknown task of GLUE 'hans'"):
        glue_files(Task.named("hans"))


@pytest.mark.parametrize(
    ("name", "labels", "written"),
    [
        ("SST-2.tsv", ["positive", "negative"], ["1", "0"]),
        ("CoLA.tsv", ["unacceptable", "acceptable"], ["0", "1"]),
        ("QNLI.tsv", ["entailment", "not_entailment"], ["entailment", "not_entailment"]),
        ("RTE.tsv", ["not_entailment", "entailment"], ["not_entailment", "entailment"]),
        ("AX.tsv", ["neutral", "contradiction"], ["neutral", "contradiction"]),
        ("STS-B.tsv", [3.14159, 5.7, -0.2], ["3.142", "5.000", "0.000"]),
    ],
)
def test_labels_are_written_as_the_server_wants(
    tmp_path: Path, name: str, labels: list[str | float], written: list[str]
) -> None:
    assert all(label in (Task.named(GLUE[name].task).labels or labels) for label in labels)
    path = write_submission(tmp_path, GLUE[name], [Prediction(label) for label in labels], partial=True)
    rows = [f"{number}\t{value}" for number, value in enumerate(written)]
    assert path.read_text() == "\n".join(["index\tprediction", *rows]) + "\n"


def test_a_submission_has_every_row(tmp_path: Path) -> None:
    predictions = [Prediction("entailment" if i % 2 else "not_entailment") for i in range(146)]
    with pytest.raises(
        DataError, match=r"RTE\.tsv: 146 predictions, but the test set \(test\.tsv\) has 3000 rows"
    ):
        write_submission(tmp_path, GLUE["RTE.tsv"], predictions)
    labels = Task.named("wnli").labels or []
    write_submission(tmp_path, GLUE["WNLI.tsv"], [Prediction(labels[i % 2]) for i in range(146)])
    assert len((tmp_path / "WNLI.tsv").read_text().splitlines()) == 147
    assert missing_files(tmp_path) == [name for name in GLUE if name != "WNLI.tsv"]
