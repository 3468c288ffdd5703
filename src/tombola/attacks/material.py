"""The examples to attack: texts with true labels, from a task's split or a plain list, and a sample of them."""

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tombola.errors import DataError, UnknownName
from tombola.tasks import Split, kind_of
from tombola.tasks.readers import half_character

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

Labelled = tuple[str | Sequence[str], int]


class Material(NamedTuple):
    """Texts, true labels, the names of columns and labels, and the columns that may be changed."""

    texts: list[tuple[str, ...]]
    truths: list[int]
    columns: list[str]
    labels: list[str]
    attackable: list[str]

    @classmethod
    def of(
        cls,
        examples: Split | Sequence[Labelled],
        config: "PreTrainedConfig",
        labels: Sequence[str] | None = None,
        attackable: Sequence[str] | None = None,
    ) -> "Material":
        """Collect the examples, and check that the model is a classifier with enough labels.

        The labels of a split are the task's; `label_order` says which outputs of the model mean them.
        """
        if config.num_labels < 2:
            raise DataError("Attacks need a classifier, but this model has a single output.")
        num_labels = config.num_labels
        if isinstance(examples, Split):
            material, num_labels = cls._of_split(examples), examples.task.num_labels
        else:
            material = cls._of_list(examples, [str(config.id2label[i]) for i in range(config.num_labels)])
        material = material._replace(
            labels=list(labels or material.labels), attackable=list(attackable or material.attackable)
        )
        material._check(num_labels)
        return material

    @classmethod
    def _of_split(cls, split: Split) -> "Material":
        task = split.task
        if task.labels is None or not task.single_label:
            raise DataError(
                f"{task.name} is a {task.kind} task, but attacks need a classification task with one label per text."
            )
        if not kind_of(task).label_logits:
            raise DataError(
                f"{task.name} is scored by likelihood, but attacks need a model with a classification head."
            )
        return cls(
            split.texts, [int(label) for label in split.labels], task.text, task.labels, task.attackable
        )

    @classmethod
    def _of_list(cls, examples: Sequence[Labelled], labels: list[str]) -> "Material":
        texts: list[tuple[str, ...]] = []
        truths: list[int] = []
        for i, example in enumerate(examples):
            try:
                text, truth = example
                texts.append((text,) if isinstance(text, str) else tuple(text))
                truths.append(int(truth))
            except (TypeError, ValueError):
                raise DataError(
                    f"Example {i}: {example!r} where a text, or a pair of texts, and the number of its label are "
                    "expected."
                ) from None
        columns = ["text"] if all(len(text) == 1 for text in texts) else ["text1", "text2"]
        return cls(texts, truths, columns, labels, columns)

    def _check(self, num_labels: int) -> None:
        if not self.texts:
            raise DataError("There is nothing to attack: the list of examples is empty.")
        for i, (text, truth) in enumerate(zip(self.texts, self.truths, strict=True)):
            if len(text) != len(self.columns):
                raise DataError(f"Example {i} has {len(text)} texts where {len(self.columns)} are expected.")
            if problem := half_character(text):
                raise DataError(f"Example {i} {problem}.")
            if not 0 <= truth < num_labels:
                raise DataError(
                    f"Example {i} has label {truth}, but the model only knows 0 to {num_labels - 1}."
                )
        if len(self.labels) != num_labels:
            raise DataError(f"{len(self.labels)} label names were given for the model's {num_labels} labels.")
        for column in self.attackable:
            if column not in self.columns:
                raise UnknownName("column", column, self.columns, where="attackable")

    @property
    def attackable_columns(self) -> frozenset[int]:
        """The indices of the columns that may be changed."""
        return frozenset(self.columns.index(column) for column in self.attackable)

    def sample(self, n: int | None, seed: int) -> list[int]:
        """Return the indices of `n` random examples, balanced over the classes as far as possible; all for None.

        The sample for n + 1 contains that for n.
        """
        if seed < 0:
            raise DataError(f"seed: takes 0 or more, not {seed}.")
        if n is None:
            return list(range(len(self.texts)))
        if not 0 < n <= len(self.texts):
            raise DataError(f"Cannot attack {n} examples: choose from 1 to {len(self.texts)}, which is all.")
        turns: dict[int, int] = dict.fromkeys(self.truths, 0)
        ranks: list[tuple[int, int, int]] = []
        for i in np.random.default_rng(seed).permutation(len(self.texts)).tolist():
            ranks.append((turns[self.truths[i]], len(ranks), i))
            turns[self.truths[i]] += 1
        return sorted(i for _, _, i in sorted(ranks)[:n])

    def fingerprint(self, indices: Sequence[int]) -> str:
        """Return a hash of the texts and labels at `indices`."""
        content = json.dumps([(i, self.texts[i], self.truths[i]) for i in indices])
        return blake2b(content.encode(), digest_size=16).hexdigest()
