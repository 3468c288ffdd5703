"""One split of a task in memory: texts, labels, ids and their fingerprint."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from tombola.errors import DataError
from tombola.foundations.lazy import lazy_module
from tombola.foundations.plugins import plugins_of
from tombola.tasks.kinds import task_kinds

if TYPE_CHECKING:
    import numpy as np

    from tombola.tasks.task import Task
else:
    np = lazy_module("numpy")


@dataclass(frozen=True, eq=False)
class Split:
    """Examples in a fixed order. `texts` holds one or two strings per example, `columns` the task's other columns."""

    task: "Task"
    name: str
    texts: list[tuple[str, ...]]
    labels: list[Any]  # classes, numbers, flags, tags or `Answers`; None for passages
    ids: list[str]
    source: str
    columns: dict[str, list[Any]] = field(default_factory=dict)
    dropped: int = 0  # malformed rows that the task's layout drops

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Split({self.task.name}/{self.name}: {len(self):,} examples)"

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that decides a result: the task's name, version, kind, labels and settings, and the rows.

        Metrics and the names of groups are excluded, since they affect only evaluations, which add them to their keys.
        """
        task = self.task
        head = [task.name, task.version, task.kind, task.labels, task.kind_settings.canonical()]
        head += [plugins] if (plugins := plugins_of(task_kinds[task.kind])) else []
        digest = blake2b(json.dumps(head, sort_keys=True).encode(), digest_size=16)
        for identity, texts, label in zip(self.ids, self.texts, self.labels, strict=True):
            digest.update(
                json.dumps([identity, texts, label], ensure_ascii=False).encode("utf-8", "surrogatepass")
            )
        grouped = {name for names in task.grouped for name in names} & self.columns.keys()
        for name in sorted(grouped):
            digest.update(json.dumps([name, self.columns[name]], default=str).encode())
        return digest.hexdigest()

    @cached_property
    def text_keys(self) -> list[int]:
        """A hash of each example's words without case and punctuation, equal for texts that read the same.

        A text of punctuation alone, such as :), is hashed as it is.
        """
        from tombola.words.scripts import JOINERS, MARKS

        emoji = "\u2600-\u27bf\U0001f000-\U0001faff"
        find = re.compile(rf"[\w{MARKS}{JOINERS}{emoji}]+").findall
        return [hash(tuple(tuple(find(text.casefold())) or text for text in texts)) for texts in self.texts]

    def select(self, indices: Sequence[int]) -> "Split":
        """Return the examples at `indices`, in that order."""
        return Split(
            task=self.task,
            name=self.name,
            texts=[self.texts[i] for i in indices],
            labels=[self.labels[i] for i in indices],
            ids=[self.ids[i] for i in indices],
            source=self.source,
            columns={column: [values[i] for i in indices] for column, values in self.columns.items()},
            dropped=self.dropped,
        )

    def sample(self, n: int, seed: int, balanced: bool = False) -> "Split":
        """Draw `n` examples without replacement, in original order; the sample for n + 1 contains that for n.

        `balanced` draws equally from all classes, as far as possible.
        """
        if not 0 < n <= len(self):
            raise DataError(
                f"Cannot sample {n} examples from {self.task.name}/{self.name}, which has {len(self)}."
            )
        order = np.random.default_rng(seed).permutation(len(self))
        if balanced:
            order = self._by_turns(order)
        return self.select(sorted(order[:n].tolist()))

    def _by_turns(self, order: "np.ndarray") -> "np.ndarray":
        """Rearrange `order` so that the classes take turns, one example each, until they run out."""
        if not self.task.single_label:
            raise DataError(
                f"{self.task.name} is a {self.task.kind} task, which has no classes to balance a sample over."
            )
        labels = np.asarray(self.labels)[order]
        turn = np.empty(len(order), dtype=np.int64)
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            turn[members] = np.arange(len(members))
        return order[np.argsort(turn, kind="stable")]
