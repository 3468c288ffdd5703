"""Label new texts by a fine-tuned classifier, so that a ticket can be trained on them, too."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tombola.foundations.checksums import write_whole
from tombola.foundations.yaml12 import dump_yaml
from tombola.pipeline.references import DataSource, FileSource, ModelSource
from tombola.store.stage import Stage, Workspace
from tombola.tasks import Split
from tombola.tasks.without_labels import new_texts

TASK, ROWS = "labelled.yaml", "labelled.jsonl"


@dataclass(frozen=True, eq=False, kw_only=True)
class Label(Stage[Path]):
    """The texts with the classifier's answers, as the training data of a task file."""

    kind: ClassVar = "label"
    version: ClassVar = 1

    model: ModelSource
    """The fine-tuned classifier."""
    texts: FileSource
    splits: tuple[DataSource, ...]
    """The task's own data, whose texts are left out."""
    max_length: int

    @property
    def label(self) -> str:
        """The description of the stage."""
        return "label new texts"

    def texts_read(self) -> None:
        """Return None: the number is unknown."""

    def run(self, space: Workspace) -> None:
        """Predict the texts, and write them with their labels and a task file."""
        from tombola.evaluation.evaluate import predict_split

        task = self.splits[0].definition
        texts = new_texts(task, self.texts.unchanged(), (data.load() for data in self.splits))
        answers = predict_split(
            self.model.load_finetuned(task),
            self.model.tokenizer(),
            texts,
            max_length=self.max_length,
            progress=space.progress,
        )
        write_labelled(space.folder, texts, (str(answer.label) for answer in answers))

    def read(self, folder: Path) -> Path:
        """Return the task file."""
        return folder / TASK


def write_labelled(folder: Path, texts: Split, labels: Iterable[str]) -> Path:
    """Write texts with labels, and the task file that describes them; return the latter."""
    task = texts.task
    rows = (
        {**dict(zip(task.text, each, strict=True)), "label": label}
        for each, label in zip(texts.texts, labels, strict=True)
    )
    write_whole(folder / ROWS, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    definition = {
        "name": f"{task.name}_labelled",
        "version": 1,
        "about": f"texts of {task.name}, labelled by a classifier",
        "text": list(task.text) if len(task.text) > 1 else task.text[0],
        "labels": list(task.labels or ()),
        "metrics": ["accuracy"],
        "source": {"files": {"train": ROWS}},
        "language": task.language,
    }
    write_whole(folder / TASK, dump_yaml(definition))
    return folder / TASK
