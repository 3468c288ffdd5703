"""Read the log-probabilities of a bias model trained elsewhere, and store those of a stage."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from scipy.optimize import linear_sum_assignment
from scipy.stats import binomtest

from tombola.bias.pickles import read_plain_pickle
from tombola.errors import DataError
from tombola.tasks import Split
from tombola.tasks.labels import outputs_by_label
from tombola.tasks.readers import read_json

logger = logging.getLogger(__name__)

LOG_PROBS = "bias.safetensors"
TOLERANCE = 1e-2  # on the sum of a row's probabilities, which may come from half precision
SURELY = 1e-4  # probability of rejecting a file that is unrelated to the labels
CLEARLY = 0.1  # how much better another column order must be to cause a warning


Missing = Literal["error", "drop", "uniform"]


def read_log_probs(
    path: Path, split: Split, labels: Sequence[str] | None = None, missing: Missing = "error"
) -> np.ndarray:
    """Return the file's log-probabilities of the task's labels, in the split's order.

    Args:
        path: An .npy with one row per example, or a .json or .pkl with rows by example id.
        split: The training data.
        labels: The labels of the file's columns, if not in the task's order.
        missing: What to do with examples that a file by id lacks. `drop` expects them to be removed already.
    """
    content = _read(path)
    if isinstance(content, np.ndarray):
        rows = len(content) if content.ndim else 0
        if rows != len(split):
            raise DataError(
                f"{path}: {rows} rows for the {len(split)} examples of {split.task.name}/{split.name}; for a "
                "subset of the data, use a .json or .pkl by example id."
            )
        values = content
    else:
        values = _by_id(path, content, split, uniform=missing == "uniform")
    values = _checked(path, values, split)
    order = _column_order(path, split, labels)
    check_columns(path, values, split, order)
    return values[:, order]


def predicted_ids(path: Path) -> set[str]:
    """Return the ids of the examples in a file by id."""
    content = _read(path)
    if isinstance(content, np.ndarray):
        raise DataError(
            f"{path}: has rows without ids, so missing examples cannot be identified; use a .json or .pkl by example "
            "id."
        )
    return set(content)


def with_predictions(split: Split, path: Path) -> Split:
    """Return the examples of a split that a file has predictions for, with a warning if others are left out."""
    if not path.is_file():
        raise DataError(f"bias.path: there is no file {path}")
    predicted = predicted_ids(path)
    kept = [place for place, identity in enumerate(split.ids) if identity in predicted]
    if not kept:
        raise DataError(
            f"{path}: has no prediction for any of the {len(split)} examples of {split.task.name}/{split.name}; an "
            f"example id is {split.ids[0]!r}, an id in the file {next(iter(predicted), None)!r}."
        )
    if len(kept) < len(split):
        logger.warning(
            "bias.missing: drop excludes %s of the %s training examples, for which %s has no prediction",
            len(split) - len(kept), len(split), path,
        )  # fmt: skip
    return split.select(kept)


def _read(path: Path) -> np.ndarray | dict[str, Any]:
    """Read rows in order, or rows by id; numeric ids become strings."""
    match path.suffix:
        case ".npy":
            return _read_npy(path)
        case ".json":
            content = read_json(path)
        case ".pkl" | ".pickle":
            content = read_plain_pickle(path)
            if isinstance(content, list):
                content = _array(path, content)
            if isinstance(content, np.ndarray):
                return content
        case ending:
            raise DataError(
                f"{path}: cannot read {ending!r} files of log-probabilities; use .npy, .json or .pkl."
            )
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected an object that maps example ids to lists of log-probabilities.")
    by_id = {_identity(key): row for key, row in content.items()}
    if len(by_id) < len(content):
        raise DataError(f"{path}: some ids occur twice, once as a number and once as a string.")
    return by_id


def _identity(key: Any) -> str:
    return key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)


def _array(path: Path, rows: list[Any]) -> np.ndarray:
    try:
        return np.stack([np.asarray(row) for row in rows])
    except ValueError:
        raise DataError(f"{path}: its rows have different lengths.") from None


def _read_npy(path: Path) -> np.ndarray:
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: not an .npy file of numbers ({error}).") from None
    if not isinstance(values, np.ndarray):
        raise DataError(f"{path}: not an .npy file of numbers (it is an .npz archive).")
    return values


def _by_id(path: Path, content: dict[str, Any], split: Split, uniform: bool) -> np.ndarray:
    missing = [identity for identity in split.ids if identity not in content]
    if missing and (not uniform or len(missing) == len(split)):
        example_id = next(iter(content), None)
        advice = (
            "Set bias.missing: drop to leave them out of training, or uniform to treat all labels as equally likely."
            if len(missing) < len(split)
            else "The file belongs to other data: use its ids, or another file."
        )
        raise DataError(
            f"{path}: {len(missing)} of the {len(split)} examples of {split.task.name}/{split.name} are missing from "
            f"it, the first with the id {missing[0]!r} (an id in the file: {example_id!r}). {advice}"
        )
    count = split.task.num_labels
    even = [-float(np.log(count))] * count
    rows = [content.get(identity, even) for identity in split.ids]
    for identity, row in zip(split.ids, rows, strict=True):
        if not isinstance(row, list | tuple | np.ndarray) or len(row) != count:
            raise DataError(f"{path}: {identity!r} has {row!r}, not {count} numbers, one per label.")
    if missing:
        logger.warning(
            "%s has no prediction for %s of %s examples, for which all labels are treated as equally likely",
            path, len(missing), len(split),
        )  # fmt: skip
    return np.array([list(row) for row in rows], dtype=object)


def _column_order(path: Path, split: Split, labels: Sequence[str] | None) -> list[int]:
    """Return the file's column of each of the task's labels."""
    task = split.task
    if labels is None:
        return list(range(task.num_labels))
    places_by_label = outputs_by_label(labels, task)
    if places_by_label is None or any(len(places) != 1 for places in places_by_label):
        raise DataError(
            f"bias.labels: {list(labels)} do not match the labels of {task.name}, {task.labels}, with one per column "
            f"of {path}."
        )
    return [place for (place,) in places_by_label]


def check_columns(path: Path, values: np.ndarray, split: Split, order: Sequence[int]) -> None:
    """Reject a file whose predictions are worse than chance, and suggest the column order that would fix it.

    Chance is the accuracy of predictions with the same frequencies that are independent of the labels.
    """
    columns, truth = values.argmax(axis=1), np.asarray(split.labels)
    count = split.task.num_labels
    hits = np.zeros((count, count), dtype=np.int64)
    np.add.at(hits, (columns, truth), 1)
    column_of = np.asarray(order)
    right = int(hits[column_of, np.arange(count)].sum())
    chance = float((hits.sum(axis=1)[column_of] / len(truth)) @ (hits.sum(axis=0) / len(truth)))
    best_columns, best_labels = linear_sum_assignment(hits, maximize=True)
    best = int(hits[best_columns, best_labels].sum())
    if right == best or best <= 0:
        return
    names = split.task.labels or []
    reordered = ", ".join(names[label] for label in best_labels)
    as_it_is, as_reordered = right / len(truth), best / len(truth)
    if binomtest(right, len(truth), min(chance, 1.0), alternative="less").pvalue < SURELY:
        raise DataError(
            f"{path}: its predictions are correct for {as_it_is:.1%} of the training examples, below chance at "
            f"{chance:.1%}: its columns are not {', '.join(names[i] for i in np.argsort(column_of))}. With "
            f"bias.labels: [{reordered}] they are correct for {as_reordered:.1%}."
        )
    if as_reordered - as_it_is > CLEARLY:
        logger.warning(
            "%s: its predictions are correct for %.1f %% of the training examples, but for %.1f %% with bias.labels: "
            "[%s]; check the order of its columns",
            path, 100 * as_it_is, 100 * as_reordered, reordered,
        )  # fmt: skip


def _checked(path: Path, values: np.ndarray, split: Split) -> np.ndarray:
    labels = split.task.num_labels
    if values.shape != (len(split), labels):
        raise DataError(f"{path}: shape {values.shape} where ({len(split)}, {labels}) is expected.")
    try:
        values = values.astype(np.float32)
    except (OverflowError, TypeError, ValueError):
        raise DataError(f"{path}: contains values that are not numbers, or too large.") from None
    if not np.isfinite(values).all():
        row = int((~np.isfinite(values).all(axis=1)).argmax())
        raise DataError(
            f"{path}: the row of example {split.ids[row]!r} is not finite: {values[row].tolist()}."
        )
    sums = np.exp(values.astype(np.float64)).sum(axis=1)
    if (wrong := np.abs(sums - 1) > TOLERANCE).any():
        row = int(wrong.argmax())
        plain = (values >= 0).all() and np.allclose(values.sum(axis=1), 1, atol=TOLERANCE)
        reason = (
            "these are probabilities: use their logarithms"
            if plain
            else f"those of example {split.ids[row]!r} add up to {sums[row]:.3g} as probabilities"
        )
        raise DataError(f"{path}: not normalised log-probabilities; {reason}.")
    normalised: np.ndarray = values - np.log(sums)[:, None].astype(np.float32)
    return normalised


def write(folder: Path, log_probs: np.ndarray, split: Split) -> None:
    """Save the log-probabilities of a split, with its fingerprint."""
    tensor = torch.from_numpy(np.ascontiguousarray(log_probs, dtype=np.float32))
    save_file({"log_probs": tensor}, folder / LOG_PROBS, metadata={"data": split.fingerprint})


def read(folder: Path, split: Split | None = None) -> torch.Tensor:
    """Read the log-probabilities of a bias stage, (examples, labels), and check that they belong to `split`."""
    with safe_open(folder / LOG_PROBS, "pt") as file:
        made_for = (file.metadata() or {}).get("data")
        if split is not None and made_for != split.fingerprint:
            raise DataError(
                f"{folder / LOG_PROBS} was computed for the data {made_for}, not for {split.task.name}/{split.name} "
                f"({split.fingerprint})."
            )
        log_probs: torch.Tensor = file.get_tensor("log_probs")
        return log_probs
