"""A user's file of log-probabilities: every way in which it may not fit the data gets a sentence."""

import json
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tombola.bias import read, read_log_probs
from tombola.bias.files import predicted_ids, write
from tombola.errors import DataError
from tombola.tasks import Split, Task

RTE = Task.named("rte")
SPLIT = Split(RTE, "train", [("a", "b"), ("c", "d"), ("e", "f")], [0, 1, 1], ["7", "8", "9"], "")
ROWS = np.log([[0.5, 0.5], [0.25, 0.75], [0.1, 0.9]])


def saved(folder: Path, content: Any) -> Path:
    if isinstance(content, np.ndarray):
        np.save(folder / "bias.npy", content)
        return folder / "bias.npy"
    (folder / "bias.json").write_text(json.dumps(content))
    return folder / "bias.json"


def test_npy_goes_by_row_and_json_by_id(tmp_path: Path) -> None:
    np.testing.assert_allclose(read_log_probs(saved(tmp_path, ROWS), SPLIT), ROWS, rtol=1e-6)
    by_id = {"9": ROWS[2].tolist(), "7": ROWS[0].tolist(), "8": ROWS[1].tolist(), "spare": [0, 0]}
    found = read_log_probs(saved(tmp_path, by_id), SPLIT)
    np.testing.assert_allclose(found, ROWS, rtol=1e-6)
    assert found.dtype == np.float32
    np.testing.assert_allclose(
        read_log_probs(saved(tmp_path, by_id), SPLIT.select([2, 0])), ROWS[[2, 0]], rtol=1e-6
    )


def test_rounding_is_mended(tmp_path: Path) -> None:
    found = read_log_probs(saved(tmp_path, ROWS.astype(np.float16)), SPLIT)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1, atol=1e-6)


WRONG: dict[str, tuple[Any, str]] = {
    "rows": (ROWS[:2], "2 rows for the 3 examples of rte/train"),
    "labels": (np.log(np.full((3, 3), 1 / 3)), r"shape \(3, 3\) where \(3, 2\)"),
    "probabilities": (np.exp(ROWS), "these are probabilities: use their logarithms"),
    "not normalised": (ROWS - 1, "'7' add up to 0.368"),
    "infinite": (np.array([[0, -np.inf]] * 3), "example '7' is not finite"),
    "ids": ({"7": [0, 0]}, "2 of the 3 examples .* the first with the id '8'"),
    "length": ({"7": [0], "8": [0, 0], "9": [0, 0]}, "'7' has .*not 2 numbers"),
    "words": ({"7": ["a", "b"], "8": [0, 0], "9": [0, 0]}, "not numbers"),
    "too large": ({"7": [10**400, 0], "8": [0, 0], "9": [0, 0]}, "not numbers, or too large"),
    "one number": (np.array(0.5), "0 rows for the 3 examples"),
    "list": ([1, 2], "expected an object"),
    "objects": (np.array([{}, {}, {}], dtype=object), "not an .npy file of numbers"),
}


def test_a_file_that_only_ends_in_npy_is_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "bias.npy"
    file.write_bytes(b"")
    with pytest.raises(DataError, match=r"not an \.npy file of numbers"):
        read_log_probs(file, SPLIT)
    with file.open("wb") as archive:
        np.savez(archive, rows=ROWS)
    with pytest.raises(DataError, match=r"it is an \.npz archive"):
        read_log_probs(file, SPLIT)


@pytest.mark.parametrize(("content", "reason"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit(tmp_path: Path, content: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read_log_probs(saved(tmp_path, content), SPLIT)


def test_other_endings(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"use \.npy, \.json or \.pkl"):
        read_log_probs(tmp_path / "bias.csv", SPLIT)


MNLI = Task.named("mnli")
RELEASED = ["contradiction", "entailment", "neutral"]


def nli(right: float, order: list[str], examples: int = 90) -> tuple[Split, np.ndarray]:
    """Data with all three labels, and predictions in some order of columns that are right so often."""
    truth = [place % 3 for place in range(examples)]
    split = Split(
        MNLI, "train", [("a", "b")] * examples, truth, [str(place) for place in range(examples)], ""
    )
    said = [label if place < right * examples else (label + 1) % 3 for place, label in enumerate(truth)]
    columns = [order.index((MNLI.labels or [])[label]) for label in said]
    return split, np.log(np.where(np.eye(3)[columns] > 0, 0.8, 0.1))


def test_columns_in_another_order_stop_the_run_and_the_message_mends_it(tmp_path: Path) -> None:
    split, rows = nli(0.9, RELEASED)
    with pytest.raises(DataError, match=r"correct for 0\.0%") as caught:
        read_log_probs(saved(tmp_path, rows), split)
    assert "below chance at 33.3%" in str(caught.value)
    assert "bias.labels: [contradiction, entailment, neutral] they are correct for 90.0%" in str(caught.value)
    mended = read_log_probs(saved(tmp_path, rows), split, labels=RELEASED)
    assert (mended.argmax(axis=1) == np.asarray(split.labels)).mean() == pytest.approx(0.9)
    _, ours = nli(0.9, MNLI.labels or [])
    np.testing.assert_allclose(mended, ours, rtol=1e-5)


def test_wrong_names_of_columns_are_found_out_too(tmp_path: Path) -> None:
    split, rows = nli(0.9, RELEASED)
    with pytest.raises(DataError, match="columns are not neutral, contradiction, entailment"):
        read_log_probs(saved(tmp_path, rows), split, labels=["neutral", "contradiction", "entailment"])
    with pytest.raises(
        DataError, match=r"bias\.labels: \['yes', 'no', 'maybe'\] do not match the labels of mnli"
    ):
        read_log_probs(saved(tmp_path, rows), split, labels=["yes", "no", "maybe"])


def test_two_columns_that_are_swapped_get_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    split, rows = nli(1.0, ["entailment", "contradiction", "neutral"])
    read_log_probs(saved(tmp_path, rows), split)
    assert "bias.labels: [entailment, contradiction, neutral]" in caplog.text


def test_a_weak_model_and_one_that_always_says_the_rare_label_are_no_mistakes(tmp_path: Path) -> None:
    truth = [0] * 900 + [1] * 100
    split = Split(RTE, "train", [("a", "b")] * 1000, truth, [str(i) for i in range(1000)], "")
    rare = np.log(np.tile([0.3, 0.7], (1000, 1)))
    assert read_log_probs(saved(tmp_path, rare), split).argmax(axis=1).sum() == 1000
    random = np.log(np.random.default_rng(0).dirichlet([1, 1], size=1000))
    read_log_probs(saved(tmp_path, random), split)


def pickled(folder: Path, content: Any, protocol: int = 4) -> Path:
    (folder / "bias.pkl").write_bytes(pickle.dumps(content, protocol))
    return folder / "bias.pkl"


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("kind", ["lists", "arrays", "numbers", "in order", "one array"])
def test_a_released_pickle_is_read_without_unpickling_it(tmp_path: Path, kind: str, protocol: int) -> None:
    contents: dict[str, Any] = {
        "lists": {7: ROWS[0].tolist(), 8: ROWS[1].tolist(), 9: tuple(ROWS[2].tolist())},
        "arrays": {7 + place: row.astype(np.float32) for place, row in enumerate(ROWS)},
        "numbers": OrderedDict((str(7 + place), list(row)) for place, row in enumerate(ROWS)),
        "in order": list(ROWS.astype(">f8")),
        "one array": np.asfortranarray(ROWS),
    }
    found = read_log_probs(pickled(tmp_path, contents[kind], protocol), SPLIT)
    np.testing.assert_allclose(found, ROWS, rtol=1e-6)


class Malicious:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return (Path.touch, (self.target,))


class Evaluating(Malicious):
    def __reduce__(self) -> Any:
        return (eval, (f"open({str(self.target)!r}, 'w')",))


@pytest.mark.parametrize("kind", [Malicious, Evaluating])
@pytest.mark.parametrize("protocol", range(6))
def test_no_code_of_a_pickle_is_run(tmp_path: Path, kind: type[Malicious], protocol: int) -> None:
    target = tmp_path / "made"
    path = pickled(tmp_path, {7: ROWS[0].tolist(), 8: kind(target)}, protocol)
    with pytest.raises(DataError, match=r"is not a plain pickle of numbers: it contains .*convert it"):
        read_log_probs(path, SPLIT)
    assert not target.exists()
    pickle.loads(path.read_bytes())
    assert target.exists(), "the pickle would have made a file"


@pytest.mark.parametrize(
    "content", [{7: {1, 2}}, {(1, 2): [0.0]}, {7: np.array([{}])}, {7: np.array(["a"])}, {7: complex(1, 2)}]
)
def test_other_objects_in_a_pickle_are_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises(DataError, match="is not a plain pickle"):
        read_log_probs(pickled(tmp_path, content), SPLIT)


def test_a_broken_pickle_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "bias.pkl").write_bytes(pickle.dumps({7: [0.0, 1.0]})[:-4])
    with pytest.raises(DataError, match="not a complete pickle"):
        read_log_probs(tmp_path / "bias.pkl", SPLIT)
    (tmp_path / "bias.pkl").write_bytes(b"7 0.1 0.9\n")
    with pytest.raises(DataError):
        read_log_probs(tmp_path / "bias.pkl", SPLIT)


def test_what_is_missing_is_an_error_unless_it_is_to_be_uniform(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = saved(tmp_path, {"7": ROWS[0].tolist(), "9": ROWS[2].tolist()})
    with pytest.raises(DataError, match=r"1 of the 3 .*'8'.*bias\.missing: drop"):
        read_log_probs(path, SPLIT)
    found = read_log_probs(path, SPLIT, missing="uniform")
    np.testing.assert_allclose(found, [ROWS[0], np.log([0.5, 0.5]), ROWS[2]], rtol=1e-6)
    assert "1 of 3 examples" in caplog.text
    assert predicted_ids(path) == {"7", "9"}


def test_what_a_stage_keeps_knows_its_data(tmp_path: Path) -> None:
    write(tmp_path, ROWS, SPLIT)
    kept = read(tmp_path, SPLIT)
    torch.testing.assert_close(kept, torch.tensor(ROWS, dtype=torch.float32))
    assert torch.equal(kept, read(tmp_path))
    with pytest.raises(DataError, match="was computed for the data"):
        read(tmp_path, SPLIT.select([1, 0, 2]))


def test_a_file_about_other_examples_is_not_taken_for_a_uniform_one(tmp_path: Path) -> None:
    """All labels equally likely for every example is no debiasing at all."""
    path = saved(tmp_path, {"train-7": [-0.7, -0.7], "train-8": [-0.7, -0.7]})
    with pytest.raises(DataError, match=r"3 of the 3 examples .*an id in the file: 'train-7'.*: use its ids"):
        read_log_probs(path, SPLIT, missing="uniform")
