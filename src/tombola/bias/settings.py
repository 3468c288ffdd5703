"""Bias models, as recipes name them: weak models of what is spurious in the training data. (SRNets, §3)"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from pydantic import Field

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
    """What a bias model says: log-probabilities of the labels, as float32 of shape (examples, labels)."""

    @property
    def train(self) -> np.ndarray:
        """Those of the training examples, in their order."""
        ...

    def log_probs(self, split: Split) -> np.ndarray:
        """Those of another split's examples, where the bias model generalises."""
        ...


class BiasModel(Choice):
    """A weak model of what is spurious, whose predictions losses against bias read."""

    choices: ClassVar = bias_models
    tag: ClassVar[str] = "method"

    generalises: ClassVar[bool] = True
    """Whether it can predict other data than the training data."""

    method: str

    @property
    def reads_model(self) -> str | None:
        """The name of a pre-trained model that it reads, if it reads one."""
        return None

    @property
    def reads_file(self) -> str | None:
        """The path of a file that it reads, if it reads one."""
        return None

    @abstractmethod
    def fit(
        self, split: Split, seed: int, model: Path | None = None, file: Path | None = None
    ) -> Predictions:
        """Predict the training split.

        Args:
            split: The training data.
            seed: Decides on all that is random.
            model: The folder of the model that `reads_model` names.
            file: The file that `reads_file` names.
        """
        ...


class FittedBias(BiasModel):
    """A bias model that is a linear model: a subclass says what the model looks at.

    Its training data gets predictions out of fold, unless the settings say otherwise.
    """

    predictions: Literal["out_of_fold", "in_sample"] = Field(
        "out_of_fold",
        description="out_of_fold: by a model that has not seen the example; in_sample: as published",
    )
    folds: int = Field(5, ge=2, description="parts of the training data that are predicted in turn")
    strength: float = Field(1.0, gt=0, description="inverse of the L2 penalty on the linear model's weights")

    @abstractmethod
    def features(self, split: Split, model: Path | None) -> np.ndarray | list[list[str]]:
        """What the linear model sees of each example: a row of numbers, or words to be weighted by tf-idf."""
        ...

    def targets(self, split: Split) -> np.ndarray:
        """The classes that the linear model tells apart: the labels."""
        import numpy as np

        return np.asarray(split.labels)

    def rows(self, rows: np.ndarray, seed: int) -> np.ndarray:
        """Which of the rows it is fitted to: all."""
        return rows

    @property
    def class_weight(self) -> str | None:
        """How scikit-learn weights the classes: as frequent as they are."""
        return None

    def spread(self, log_probs: np.ndarray, classes: Sequence[int], full: np.ndarray, task: Task) -> None:
        """Write the linear model's log-probabilities of its classes into those of the task's labels."""
        full[:, list(classes)] = log_probs

    def fit(self, split: Split, seed: int, model: Path | None = None, file: Path | None = None) -> Any:
        """Fit the linear model to the training split."""
        from tombola.bias.fitting import fit

        return fit(self, split, seed, model)
