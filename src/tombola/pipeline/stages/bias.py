"""Fit a recipe's bias model, or read one from a file, and store its predictions on the training data. (SRNets, §3)"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.bias.settings import BiasModel, Predictions
from tombola.errors import DataError
from tombola.pipeline.references import DataSource, FileSource, ModelSource
from tombola.store.stage import Stage, Workspace
from tombola.tasks import Split, Task
from tombola.tasks.labels import outputs_by_label
from tombola.tasks.synthetic import FORMS
from tombola.tasks.targets import find_target

if TYPE_CHECKING:
    from torch import Tensor

DESCRIPTION = "bias.json"


@dataclass(frozen=True, eq=False, kw_only=True)
class Bias(Stage["Tensor"]):
    """A bias model's log-probabilities for training data."""

    kind: ClassVar = "bias"
    version: ClassVar = 1

    data: DataSource
    bias: BiasModel
    seed: int
    vectors: ModelSource | None = None
    file: FileSource | None = None

    @classmethod
    def of(cls, settings: BiasModel, data: DataSource, seed: int) -> Bias:
        """Return the stage of a recipe's bias model, with the further model or file that it reads."""
        vectors, file = settings.reads_model, settings.reads_file
        return cls(
            data=data,
            bias=settings,
            seed=seed,
            vectors=ModelSource.find(vectors) if vectors else None,
            file=FileSource.find(file, "bias.path") if file else None,
        )

    @property
    def label(self) -> str:
        """The description of the stage."""
        return "fit the bias model"

    def run(self, space: Workspace) -> None:
        """Write the log-probabilities of the training data, and the bias model's accuracy on this and other data.

        Data mixed into the training data carries no such bias: there, all labels are equally likely.
        """
        import numpy as np

        from tombola.bias.files import write
        from tombola.evaluation.metrics import accuracy

        unmixed, split = self.data.unmixed().load(), self.data.load()
        predictions = self.bias.fit(
            unmixed,
            self.seed,
            model=Path(self.vectors.folder) if self.vectors else None,
            file=self.file.unchanged() if self.file else None,
        )
        train, others = (
            predictions.train,
            _other_scores(predictions, self.data) if self.bias.generalises else {},
        )
        labels = unmixed.task.num_labels
        mixed = np.full((len(split) - len(unmixed), labels), -np.log(labels), dtype=np.float32)
        write(space.folder, np.concatenate([train, mixed]), split)
        scores = {"train": accuracy(train, np.asarray(unmixed.labels)).as_dict(), **others}
        described = {"settings": self.bias.canonical(), "mixed": len(mixed), "accuracy": scores}
        space.write_json(DESCRIPTION, described)

    def read(self, folder: Path) -> Tensor:
        """Read the log-probabilities, (examples, labels), in the training data's order."""
        from tombola.bias.files import read

        return read(folder)


def _other_scores(predictions: Predictions, data: DataSource) -> dict[str, Any]:
    """Return the accuracy on the task's other data, for information; missing data is noted."""
    task = data.definition
    forms = ["", *(f"+{form}" for form in FORMS)] if data.synthetic_bias else [""]
    held_out = [f"validation{form}" for form in forms if "validation" in task.split_names()]
    scores: dict[str, Any] = {}
    for on in [*held_out, *task.companions.ood]:
        name, split = find_target(on, data.task)
        place = replace(data.unmixed(), task=name, split=split, limit=None)
        if on not in held_out:
            place = replace(place, synthetic_bias=None)
        try:
            scores[on] = _accuracy(predictions, task, place.load())
        except DataError as error:
            scores[on] = {"missing": str(error)}
    return scores


def _accuracy(predictions: Predictions, task: Task, split: Split) -> dict[str, Any]:
    """Return the accuracy on another task's labels, adding up the probabilities of labels that it merges."""
    import numpy as np

    from tombola.evaluation.metrics import accuracy

    places = outputs_by_label(task.labels or [], split.task)
    if places is None:
        raise DataError(f"{split.task.name} does not have the same labels as {task.name}.")
    log_probs = predictions.log_probs(split)
    merged = np.stack([np.logaddexp.reduce(log_probs[:, group], axis=1) for group in places], axis=1)
    return accuracy(merged, np.asarray(split.labels)).as_dict()
