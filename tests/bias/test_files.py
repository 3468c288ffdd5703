"""A user's file of log-probabilities: every way in which it may not fit the data gets a sentence."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tombola.bias import read, read_log_probs
from tombola.bias.files import write
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
    "probabilities": (np.exp(ROWS), "these are probabilities: give their logarithms"),
    "not normalised": (ROWS - 1, "'7' add up to 0.368"),
    "infinite": (np.array([[0, -np.inf]] * 3), "example '7' is not finite"),
    "ids": ({"7": [0, 0]}, "2 of the 3 examples .* the first has the id '8'"),
    "length": ({"7": [0], "8": [0, 0], "9": [0, 0]}, "'7' has .*not 2 numbers"),
    "words": ({"7": ["a", "b"], "8": [0, 0], "9": [0, 0]}, "not a number"),
    "list": ([1, 2], "expected a JSON object"),
    "objects": (np.array([{}, {}, {}], dtype=object), "not an .npy file of numbers"),
}


@pytest.mark.parametrize(("content", "reason"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit(tmp_path: Path, content: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read_log_probs(saved(tmp_path, content), SPLIT)


def test_other_endings(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"use \.npy or \.json"):
        read_log_probs(tmp_path / "bias.pkl", SPLIT)


def test_what_a_stage_keeps_knows_its_data(tmp_path: Path) -> None:
    write(tmp_path, ROWS, SPLIT)
    kept = read(tmp_path, SPLIT)
    torch.testing.assert_close(kept, torch.tensor(ROWS, dtype=torch.float32))
    assert torch.equal(kept, read(tmp_path))
    with pytest.raises(DataError, match="was made for the data"):
        read(tmp_path, SPLIT.select([1, 0, 2]))
