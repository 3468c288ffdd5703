"""A whole small world on disk: a tiny pre-trained model with its tokenizer, and a task that it can learn."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tests.tiny import tiny
from tests.words import word_tokenizer

GOOD = ["fine", "lovely", "great", "bright", "moving"]
BAD = ["poor", "dull", "awful", "flat", "tired"]
PLAIN = ["film", "plot", "scene", "actor", "story", "the", "a", "was", "is", "very"]


@dataclass(frozen=True)
class World:
    """Where the model and the task file are, and a small recipe over them."""

    model: Path
    task: Path

    def recipe(self, **changes: Any) -> dict[str, Any]:
        """A recipe that trains for seconds."""
        return {
            "name": "tiny",
            "model": str(self.model),
            "task": str(self.task),
            "precision": "fp32",
            "train": {"epochs": 6, "learning_rate": 3e-3, "batch_size": 16, "max_length": 16},
            **changes,
        }


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Random sentences whose label is the sentiment of one of their words."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        label = int(rng.integers(2))
        words = list(rng.choice(PLAIN, size=rng.integers(2, 5)))
        words.insert(int(rng.integers(len(words) + 1)), str(rng.choice((BAD, GOOD)[label])))
        rows.append((" ".join(words), ("negative", "positive")[label]))
    return rows


def make_world(folder: Path, model_type: str = "bert", rows: tuple[int, int, int] = (192, 48, 48)) -> World:
    """Write the model and the task, with so many rows for training, validation and other, below `folder`."""
    model = folder / "model"
    tokenizer = word_tokenizer([" ".join(GOOD + BAD + PLAIN)])
    tiny(model_type, "base", vocab_size=len(tokenizer)).save_pretrained(model)
    tokenizer.save_pretrained(model)
    for seed, (split, count) in enumerate(zip(("train", "validation", "other"), rows, strict=True)):
        lines = ["sentence\tlabel", *("\t".join(row) for row in sentences(count, seed))]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    task = folder / "task.yaml"
    task.write_text(
        yaml.safe_dump(
            {
                "name": "tiny",
                "version": 1,
                "text": "sentence",
                "labels": ["negative", "positive"],
                "metrics": ["accuracy", "mcc"],
                "source": {"files": {split: f"{split}.tsv" for split in ("train", "validation", "other")}},
            }
        )
    )
    return World(model, task)


def tagged_task(folder: Path) -> Path:
    """The file of a task whose words have labels of their own, two sentences long."""
    (folder / "train.txt").write_text("the O\nfilm B-X\n\na O\nplot B-X\n")
    task = {
        "name": "tags",
        "version": 1,
        "kind": "token-classification",
        "text": "words",
        "labels": ["O", "B-X", "I-X"],
        "metrics": ["entity_f1"],
        "source": {"files": {"train": "train.txt"}},
    }
    path = folder / "tags.yaml"
    path.write_text(yaml.safe_dump(task))
    return path
