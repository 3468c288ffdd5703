"""A bias model trained elsewhere, with its predictions in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tombola.bias.settings import BiasModel, bias_models
from tombola.errors import DataError

if TYPE_CHECKING:
    import numpy as np

    from tombola.tasks import Split


@dataclass(frozen=True)
class FromFile:
    """Predictions for the training data only."""

    train: np.ndarray

    def log_probs(self, split: Split) -> np.ndarray:
        """Raise an error: the file covers only the training data."""
        raise DataError(f"the bias file has no predictions for {split.task.name}/{split.name}")


@bias_models.register
class BiasFile(BiasModel):
    """Log-probabilities from a file: .npy in the order of the training data, .json or .pkl by example id."""

    unhashed: ClassVar[frozenset[str]] = frozenset({"path"})
    generalises: ClassVar[bool] = False

    method: Literal["file"] = "file"
    path: str = Field(
        description="a .npy of shape (examples, labels), or a .json or plain .pkl with a list of numbers per example id"
    )
    labels: tuple[str, ...] | None = Field(
        None,
        description="labels of the file's columns, in order; by default the task's labels in their order",
    )
    missing: Literal["error", "drop", "uniform"] = Field(
        "error",
        description="examples missing from the file: stop, leave them out of all training, or treat all labels as "
        "equally likely",
    )

    @property
    def reads_file(self) -> str | None:
        """The file of the predictions."""
        return self.path

    def fit(self, split: Split, seed: int, model: Path | None = None, file: Path | None = None) -> FromFile:
        """Read the file."""
        from tombola.bias.files import read_log_probs

        path = file or Path(self.path).expanduser()
        return FromFile(read_log_probs(path, split, self.labels, self.missing))
