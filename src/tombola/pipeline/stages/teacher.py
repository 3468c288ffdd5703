"""The predictions of a fine-tuned model on its training data: the teacher of confidence regularisation. (SRNets, §3)"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.foundations.hardware import Precision
from tombola.pipeline.references import DataSource
from tombola.pipeline.stages.base import ModelStage
from tombola.store.stage import Stage, Workspace

if TYPE_CHECKING:
    from torch import Tensor

PROBABILITIES = "teacher.safetensors"


@dataclass(frozen=True, eq=False, kw_only=True)
class Teacher(Stage["Tensor"]):
    """A model's probabilities for training data, from plain logits without dropout."""

    kind: ClassVar = "teacher"
    version: ClassVar = 1

    model: ModelStage[Any]
    data: DataSource
    max_length: int
    precision: Precision

    @property
    def label(self) -> str:
        """The description of the stage."""
        return "ask the teacher"

    def texts_read(self) -> float:
        """Return the number of texts: each is read once."""
        return len(self.data.load())

    def run(self, space: Workspace) -> None:
        """Predict, and save the probabilities."""
        import torch
        from safetensors.torch import save_file

        from tombola.evaluation.predict import predict
        from tombola.models.loading import load_tokenizer
        from tombola.tasks import collate_of, encode, fitting_length

        task, tokenizer = self.data.definition, load_tokenizer(space.open(self.model))
        model, split = self.model.load(space, task), self.data.load()
        done = 0

        def progress(examples: int) -> None:
            nonlocal done
            done += examples
            space.progress(done, len(split), {})

        logits = predict(
            model,
            encode(split, tokenizer, fitting_length(self.max_length, model.config)),
            collate_of(task, tokenizer),
            precision=self.precision,
            progress=progress,
        )
        save_file({"probs": torch.from_numpy(logits).softmax(dim=1)}, space.folder / PROBABILITIES)

    def read(self, folder: Path) -> Tensor:
        """Read the probabilities, (examples, labels), in the training data's order."""
        from safetensors.torch import load_file

        probabilities: Tensor = load_file(folder / PROBABILITIES)["probs"]
        return probabilities
