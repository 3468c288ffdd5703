"""Training data whose texts change from epoch to epoch: tokenised anew, batch by batch."""

from collections.abc import Iterator, Sequence
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
    """What changes: the epoch."""

    epoch: int = 0


@dataclass(frozen=True, eq=False)
class LiveTexts(Encoded):
    """A tokenised split that keeps its texts, and gives examples as an augmenter changes them in the epoch.

    What an example becomes depends on the seeds, its id and the epoch alone, so a resumed training, another order or
    another number of processes sees the same bytes. Only changed texts are tokenised again, all of a batch at once.
    Lengths are those of the unchanged texts.

    With `consistency`, a batch holds every example as it is, and each changed copy right after it; the column
    `copy_of` says how many rows above the original stands, 0 where there is none.
    """

    texts: Sequence[Texts] = ()
    ids: Sequence[str] = ()
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
            texts=split.texts,
            ids=split.ids,
            tokenizer=tokenizer,
            max_length=max_length,
            augmenter=augmenter,
        )

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose changes are made."""
        self.now.epoch = epoch

    def __getitem__(self, index: int) -> dict[str, Any]:
        """An example as it is in the epoch: changed, if it is among those that are."""
        return self.__getitems__([index])[-1]

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """The rows of a batch: what a PyTorch loader asks for in place of single examples."""
        changed = dict(self._changed(indices))
        rows: list[dict[str, Any]] = []
        for place, index in enumerate(indices):
            example = super().__getitem__(index)
            inputs = changed.get(place)
            if not self.paired:
                rows.append(example if inputs is None else {**example, **inputs})
                continue
            rows.append({**example, COPY: 0})
            if inputs is not None:
                rows.append({**example, **inputs, COPY: 1})
        return rows

    @property
    def paired(self) -> bool:
        """Whether a changed copy stands beside its original, and not in its place."""
        return self.augmenter is not None and self.augmenter.settings.consistency > 0

    def _changed(self, indices: Sequence[int]) -> Iterator[tuple[int, dict[str, list[int]]]]:
        """The model's inputs of the examples that are changed, by their place in the batch."""
        if self.augmenter is None:
            return
        found = {
            place: texts
            for place, index in enumerate(indices)
            if (texts := self.augmenter.texts(self.texts[index], self.ids[index], self.now.epoch))
            != self.texts[index]
        }
        for place, inputs in zip(found, self._inputs(list(found.values())), strict=True):
            if inputs["input_ids"]:  # else nothing is left of the text, and it stays as it was
                yield place, inputs

    def _inputs(self, texts: Sequence[Texts]) -> Iterator[dict[str, list[int]]]:
        if not texts:
            return
        assert self.tokenizer is not None
        found = tokenize_texts(texts, self.tokenizer, self.max_length)
        for row in range(len(texts)):
            yield {name: found[name][row] for name in self.inputs}
