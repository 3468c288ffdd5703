"""Log-probabilities of a bias model that was made elsewhere, and where a stage keeps those made here."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tombola.errors import DataError
from tombola.tasks import Split
from tombola.tasks.readers import read_json

LOG_PROBS = "bias.safetensors"
TOLERANCE = 1e-2  # of the sum of a row's probabilities, which may come from half precision


def read_log_probs(path: Path, split: Split) -> np.ndarray:
    """The file's log-probabilities in the split's order: an .npy has one row for each example, a .json one by id."""
    match path.suffix:
        case ".npy":
            values = _read_npy(path)
            if len(values) != len(split):
                raise DataError(
                    f"{path}: {len(values)} rows for the {len(split)} examples of {split.task.name}/{split.name}; "
                    "a part of the data needs a .json by example id."
                )
        case ".json":
            values = _by_id(path, read_json(path), split)
        case ending:
            raise DataError(f"{path}: cannot read {ending!r} files of log-probabilities; use .npy or .json.")
    return _checked(path, values, split)


def _read_npy(path: Path) -> np.ndarray:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not an .npy file of numbers ({error}).") from None


def _by_id(path: Path, content: Any, split: Split) -> np.ndarray:
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a JSON object from example ids to lists of log-probabilities.")
    missing = [identity for identity in split.ids if identity not in content]
    if missing:
        raise DataError(
            f"{path}: {len(missing)} of the {len(split)} examples of {split.task.name}/{split.name} are not in it, "
            f"the first has the id {missing[0]!r}."
        )
    rows = [content[identity] for identity in split.ids]
    for identity, row in zip(split.ids, rows, strict=True):
        if not isinstance(row, list) or len(row) != split.task.num_labels:
            raise DataError(
                f"{path}: {identity!r} has {row!r}, not {split.task.num_labels} numbers, one for each label."
            )
    return np.array(rows, dtype=object)


def _checked(path: Path, values: np.ndarray, split: Split) -> np.ndarray:
    labels = split.task.num_labels
    if values.shape != (len(split), labels):
        raise DataError(f"{path}: shape {values.shape} where ({len(split)}, {labels}) is expected.")
    try:
        values = values.astype(np.float32)
    except (TypeError, ValueError):
        raise DataError(f"{path}: holds something that is not a number.") from None
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
            "these are probabilities: give their logarithms"
            if plain
            else f"those of example {split.ids[row]!r} add up to {sums[row]:.3g} as probabilities"
        )
        raise DataError(f"{path}: not normalised log-probabilities; {reason}.")
    return values - np.log(sums)[:, None].astype(np.float32)


def write(folder: Path, log_probs: np.ndarray, split: Split) -> None:
    """Keep the log-probabilities of a split, with its fingerprint."""
    tensor = torch.from_numpy(np.ascontiguousarray(log_probs, dtype=np.float32))
    save_file({"log_probs": tensor}, folder / LOG_PROBS, metadata={"data": split.fingerprint})


def read(folder: Path, split: Split | None = None) -> torch.Tensor:
    """The log-probabilities that a bias stage left, (examples, labels); `split` is checked to be what they are of."""
    with safe_open(folder / LOG_PROBS, "pt") as file:
        made_for = (file.metadata() or {}).get("data")
        if split is not None and made_for != split.fingerprint:
            raise DataError(
                f"{folder / LOG_PROBS} was made for the data {made_for}, not for {split.task.name}/{split.name} "
                f"({split.fingerprint})."
            )
        return file.get_tensor("log_probs")
