"""Training data whose texts change from epoch to epoch, retokenised batch by batch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

from tombola.augmentations.augmenter import Augmenter
from tombola.errors import DataError
from tombola.objectives.consistency import COPY
from tombola.objectives.distillation import ADVERSARIAL
from tombola.tasks.encoding import Encoded, tokenize_texts
from tombola.tasks.kinds import kind_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from tombola.tasks import Split

Texts = tuple[str, ...]


@dataclass
class _Now:
    """The mutable state: the epoch, and the texts added to examples in it."""

    epoch: int = 0
    added: dict[int, Texts] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LiveTexts(Encoded):
    """A tokenised split that keeps its texts, and returns examples as an augmenter changes them in the epoch.

    The change of an example depends only on the seeds, its id and the epoch, so a resumed training, another order or
    another number of processes sees the same bytes. Only changed texts are tokenised again, a batch at a time.
    Lengths are those of the unchanged texts.

    With `consistency`, a batch holds every original example, with a changed copy right after it; the column `copy_of`
    gives the distance in rows up to the original, 0 for rows that are not copies. Texts added for the epoch also
    follow their example, with its label; the column `adversarial_of` gives their distance to it.
    """

    split: "Split | None" = None
    tokenizer: "PreTrainedTokenizerBase | None" = None
    max_length: int = 0
    augmenter: Augmenter | None = None
    now: _Now = field(default_factory=_Now)

    @classmethod
    def of(
        cls,
        data: Encoded,
        split: "Split",
        tokenizer: "PreTrainedTokenizerBase",
        max_length: int,
        augmenter: Augmenter | None = None,
    ) -> Self:
        """Combine encoded data with the split that it was encoded from.

        Raises:
            DataError: If labels point into the texts, which must then stay unchanged.
        """
        if not kind_of(split.task).reads_whole_texts:
            raise DataError(f"{split.task.name}: texts of a {split.task.kind} task cannot be changed.")
        kept = {field.name: getattr(data, field.name) for field in fields(Encoded)}
        return cls(
            **kept,
            split=split,
            tokenizer=tokenizer,
            max_length=max_length,
            augmenter=augmenter,
        )

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which determines the changes."""
        self.now.epoch = epoch

    def add(self, texts: Mapping[int, Texts]) -> None:
        """Set the additional texts of this epoch, by the index of their example."""
        self.now.added = dict(texts)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return an example as it is in this epoch, changed or not."""
        inputs = dict(self._changed([index])).get(0, {})
        return {**super().__getitem__(index), **inputs}

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """Return the rows of a batch; PyTorch's loader calls this instead of fetching single examples."""
        changed, added = dict(self._changed(indices)), dict(self._added(indices))
        plain = {**({COPY: 0} if self.paired else {}), **({ADVERSARIAL: 0} if self.now.added else {})}
        rows: list[dict[str, Any]] = []
        for place, index in enumerate(indices):
            example = super().__getitem__(index)
            inputs = changed.get(place, {})
            first = len(rows)
            if self.paired:
                rows.append({**example, **plain})
                rows += [{**example, **inputs, **plain, COPY: 1}] if inputs else []
            else:
                rows.append({**example, **inputs, **plain})
            if place in added:
                rows.append({**example, **added[place], **plain, ADVERSARIAL: len(rows) - first})
        return rows

    @property
    def paired(self) -> bool:
        """Whether a changed copy is added to its original rather than replacing it."""
        return self.augmenter is not None and self.augmenter.settings.consistency > 0

    def _changed(self, indices: Sequence[int]) -> Iterator[tuple[int, dict[str, list[int]]]]:
        """Return the model inputs of the changed examples, by position in the batch."""
        if self.augmenter is None or self.split is None:
            return iter(())
        texts, ids, epoch = self.split.texts, self.split.ids, self.now.epoch
        changed = {
            place: self.augmenter.texts(texts[index], ids[index], epoch)
            for place, index in enumerate(indices)
        }
        return self._inputs({place: new for place, new in changed.items() if new != texts[indices[place]]})

    def _added(self, indices: Sequence[int]) -> Iterator[tuple[int, dict[str, list[int]]]]:
        """Return the model inputs of the added texts, by position in the batch."""
        added = self.now.added
        return self._inputs({place: added[index] for place, index in enumerate(indices) if index in added})

    def _inputs(self, texts: Mapping[int, Texts]) -> Iterator[tuple[int, dict[str, list[int]]]]:
        """Tokenise texts, skipping those without tokens."""
        if not texts:
            return
        assert self.tokenizer is not None
        tokens = tokenize_texts(list(texts.values()), self.tokenizer, self.max_length)
        for row, place in enumerate(texts):
            if tokens["input_ids"][row]:
                yield place, {name: tokens[name][row] for name in self.inputs}
