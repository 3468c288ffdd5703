"""Training data whose texts change from epoch to epoch: tokenised anew, batch by batch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

from tombola.augmentations.augmenter import Augmenter
from tombola.errors import DataError
from tombola.objectives.consistency import COPY
from tombola.tasks.encoding import Encoded, tokenize_texts
from tombola.tasks.kinds import kind_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from tombola.tasks import Split

Texts = tuple[str, ...]


@dataclass
class _Now:
    """What changes: the epoch, and further texts of examples in it."""

    epoch: int = 0
    added: dict[int, Texts] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LiveTexts(Encoded):
    """A tokenised split that keeps its texts, and gives examples as an augmenter changes them in the epoch.

    What an example becomes depends on the seeds, its id and the epoch alone, so a resumed training, another order or
    another number of processes sees the same bytes. Only changed texts are tokenised again, all of a batch at once.
    Lengths are those of the unchanged texts.

    With `consistency`, a batch holds every example as it is, and each changed copy right after it; the column
    `copy_of` says how many rows above the original stands, 0 where there is none. Texts that were added for the epoch
    stand behind their example too, with its label.
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
        """Encoded data with the split that it was encoded from.

        Raises:
            DataError: If labels point into the texts, which must then stay as they are.
        """
        if not kind_of(split.task).reads_whole_texts:
            raise DataError(f"{split.task.name}: texts of a {split.task.kind} task cannot be changed.")
        kept = {one.name: getattr(data, one.name) for one in fields(Encoded)}
        return cls(
            **kept,
            split=split,
            tokenizer=tokenizer,
            max_length=max_length,
            augmenter=augmenter,
        )

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose changes are made."""
        self.now.epoch = epoch

    def add(self, texts: Mapping[int, Texts]) -> None:
        """Choose the further texts of this epoch, by the number of the example that they are of."""
        self.now.added = dict(texts)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """An example as it is in the epoch: changed, if it is among those that are."""
        inputs = dict(self._changed([index])).get(0, {})
        return {**super().__getitem__(index), **inputs}

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """The rows of a batch: what a PyTorch loader asks for in place of single examples."""
        changed, added = dict(self._changed(indices)), dict(self._added(indices))
        plain = {COPY: 0} if self.paired else {}
        rows: list[dict[str, Any]] = []
        for place, index in enumerate(indices):
            example = super().__getitem__(index)
            inputs = changed.get(place, {})
            if self.paired:
                rows.append({**example, **plain})
                rows += [{**example, **inputs, COPY: 1}] if inputs else []
            else:
                rows.append({**example, **inputs})
            if place in added:
                rows.append({**example, **added[place], **plain})
        return rows

    @property
    def paired(self) -> bool:
        """Whether a changed copy stands beside its original, and not in its place."""
        return self.augmenter is not None and self.augmenter.settings.consistency > 0

    def _changed(self, indices: Sequence[int]) -> Iterator[tuple[int, dict[str, list[int]]]]:
        """The model's inputs of the examples that are changed, by their place in the batch."""
        if self.augmenter is None or self.split is None:
            return iter(())
        texts, ids, epoch = self.split.texts, self.split.ids, self.now.epoch
        seen = {
            place: self.augmenter.texts(texts[index], ids[index], epoch)
            for place, index in enumerate(indices)
        }
        return self._inputs({place: new for place, new in seen.items() if new != texts[indices[place]]})

    def _added(self, indices: Sequence[int]) -> Iterator[tuple[int, dict[str, list[int]]]]:
        """The model's inputs of the texts that were added to examples, by their place in the batch."""
        added = self.now.added
        return self._inputs({place: added[index] for place, index in enumerate(indices) if index in added})

    def _inputs(self, texts: Mapping[int, Texts]) -> Iterator[tuple[int, dict[str, list[int]]]]:
        """Tokenise texts; one of which nothing is left is left out."""
        if not texts:
            return
        assert self.tokenizer is not None
        found = tokenize_texts(list(texts.values()), self.tokenizer, self.max_length)
        for row, place in enumerate(texts):
            if found["input_ids"][row]:
                yield place, {name: found[name][row] for name in self.inputs}
