"""The settings of bias models: weak models of spurious features in the training data. (SRNets, §3)"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

from pydantic import Field, model_validator

from tombola.foundations.choices import Choice, Choices

if TYPE_CHECKING:
    import numpy as np

    from tombola.tasks import Split, Task

HERE = "tombola.bias"

bias_models: Choices[type[BiasModel]] = Choices(
    "bias model",
    [f"{HERE}.{name}" for name in ("file", "lexical_overlap", "one_side", "shallow", "synthetic")],
)


class Predictions(Protocol):
    """The predictions of a bias model: float32 log-probabilities of the labels, of shape (examples, labels)."""

    @property
    def train(self) -> np.ndarray:
        """The predictions for the training examples, in order."""
        ...

    def log_probs(self, split: Split) -> np.ndarray:
        """Return the predictions for another split, if the bias model generalises."""
        ...


class BiasModel(Choice):
    """A weak model of spurious features, whose predictions debiasing losses use."""

    choices: ClassVar = bias_models
    tag: ClassVar[str] = "method"

    generalises: ClassVar[bool] = True
    """Whether it can predict data other than the training data."""

    method: str

    @property
    def reads_model(self) -> str | None:
        """The name of the pre-trained model that it reads, if any."""
        return None

    @property
    def reads_file(self) -> str | None:
        """The path of the file that it reads, if any."""
        return None

    @abstractmethod
    def fit(
        self, split: Split, seed: int, model: Path | None = None, file: Path | None = None
    ) -> Predictions:
        """Predict the training split.

        Args:
            split: The training data.
            seed: The random seed.
            model: The folder of the model that `reads_model` names.
            file: The file that `reads_file` names.
        """
        ...


class FittedBias(BiasModel):
    """A linear bias model; a subclass defines its features.

    By default the training data gets out-of-fold predictions.
    """

    predictions: Literal["out_of_fold", "in_sample"] = Field(
        "out_of_fold",
        description="out_of_fold: from a model that has not seen the example; in_sample: as published",
    )
    folds: int = Field(5, ge=2, description="number of folds that are predicted in turn")
    strength: float = Field(1.0, gt=0, description="inverse of the L2 penalty on the linear model's weights")

    @model_validator(mode="after")
    def _folds_are_held_out(self) -> Self:
        if self.predictions == "in_sample" and self.folds != type(self).model_fields["folds"].default:
            raise ValueError("folds: only works with predictions: out_of_fold; leave it out")
        return self

    @abstractmethod
    def features(self, split: Split, model: Path | None) -> np.ndarray | list[list[str]]:
        """Return the features of each example: a row of numbers, or words to be weighted by tf-idf."""
        ...

    def targets(self, split: Split) -> np.ndarray:
        """Return the classes of the linear model: the labels."""
        import numpy as np

        return np.asarray(split.labels)

    def rows(self, rows: np.ndarray, seed: int) -> np.ndarray:
        """Return the rows to fit to: all."""
        return rows

    @property
    def class_weight(self) -> str | None:
        """The class weight for scikit-learn: none."""
        return None

    def spread(self, log_probs: np.ndarray, classes: Sequence[int], full: np.ndarray, task: Task) -> None:
        """Write the linear model's log-probabilities of its classes into those of the task's labels."""
        full[:, list(classes)] = log_probs

    def fit(self, split: Split, seed: int, model: Path | None = None, file: Path | None = None) -> Any:
        """Fit the linear model to the training split."""
        from tombola.bias.fitting import fit

        return fit(self, split, seed, model)
