"""Score the units of a model once, for every ticket that is drawn from the scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.base import SCORES, ModelStage, ScoreStage, UsesFamily, cut_of
from tombola.pipeline.stages.defend import Defend, tokenizer_of
from tombola.search import Evidence, SearchSettings, searches
from tombola.store.stage import Workspace

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.augmentations import AugmentSettings
    from tombola.masks import Scores, Units
    from tombola.pipeline.stages.draw import Draw
    from tombola.pipeline.stages.prune import Prune
    from tombola.pipeline.stages.search import SearchStage
    from tombola.tasks import Split

BATCH = 32
"""Batch size of the data that scorers read."""
LOGITS = 2**26
"""Logits per batch of packed documents, each token of which has one for every word of the vocabulary."""


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitScores(UsesFamily, ScoreStage):
    """The scores of all units."""

    kind: ClassVar = "score"
    version: ClassVar = 2

    model: ModelSource
    data: DataSource
    search: SearchSettings
    seed: int
    max_length: int | None = None
    of: ModelStage[Any] | None = None
    """The model whose units are scored; by default the pre-trained one."""
    defend: Defend | None = None
    """The defense that corrects the texts first, for scores that read data."""
    neighbours: int | None = None
    """The version of the bundled table of word neighbours, if an augmentation uses it."""

    @property
    def label(self) -> str:
        """The description of the stage."""
        return "score the units"

    def texts_read(self) -> float | None:
        """Return about how many texts the scores read."""
        return self.search.texts_read(len(self.data.load()), BATCH)

    def run(self, space: Workspace) -> None:
        """Score the units, and save the scores."""
        origin = self.model.load(self.data.definition, self.seed)
        score_units(self, space, origin).save(space.folder / SCORES)


def score_units(stage: UnitScores | Draw, space: Workspace, origin: PreTrainedModel) -> Scores:
    """Score each unit of the model that the search starts from."""
    scorer = searches[stage.search.method].scorer
    assert scorer is not None, f"{stage.search.method} draws from scores of another stage"
    return scorer(stage.search, *scored_model(stage, space, origin))


def scored_model(
    stage: UnitScores | Draw | Prune, space: Workspace, origin: PreTrainedModel
) -> tuple[PreTrainedModel, Units, Evidence]:
    """Return the model that a search starts from, its units, and the data available to the search."""
    from tombola.attacks.neighbours import bundled_words
    from tombola.augmentations.copies import augmented_copy
    from tombola.models.controls import Reinitialise, apply_control

    task = stage.data.definition
    model = stage.of.load(space, task) if stage.of else origin
    units = stage.search.units_of(model if cut_of(stage.of) else origin)
    if getattr(stage.search, "start", None) == "random":
        apply_control(Reinitialise(kind="reinitialise"), model, stage.seed)

    def batches(count: int | None, split: Split | None = None) -> Iterator[dict[str, Any]]:
        return read_batches(stage, space, model, stage.max_length or 128, count, split)

    def augmented(augment: AugmentSettings) -> Callable[[int | None], Iterator[dict[str, Any]]]:
        copy = augmented_copy(stage.data.load(), augment, stage.seed, "search.inputs", bundled_words())
        return partial(batches, split=copy)

    def examples(count: int, size: int) -> Iterator[dict[str, Any]]:
        batches = read_batches(stage, space, model, stage.max_length or 128, None, size=size)
        return first_examples(batches, count)

    def progress(done: int, steps: int) -> None:
        space.progress(done, steps, {})

    return model, units, Evidence(stage.seed, batches, augmented, examples, progress)


def first_examples(batches: Iterator[dict[str, Any]], count: int) -> Iterator[dict[str, Any]]:
    """Yield batches with `count` examples in total; the last one is cut to fit."""
    for batch in batches:
        size = len(batch["input_ids"])
        yield batch if size <= count else {name: value[:count] for name, value in batch.items()}
        count -= size
        if count <= 0:
            return


def read_batches(
    stage: UnitScores | Draw | Prune | SearchStage,
    space: Workspace,
    model: PreTrainedModel,
    max_length: int,
    count: int | None,
    split: Split | None = None,
    size: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Return `count` batches of the stage's data or another split; if None, all of it once."""
    from tombola.tasks import collate_of, encode, fitting_length, set_padding
    from tombola.tasks.packing import Packed
    from tombola.training.batches import ordered_batches

    tokenizer = tokenizer_of(stage.model, stage.defend, space)
    data = encode(split or stage.data.load(), tokenizer, fitting_length(max_length, model.config))
    collate = collate_of(stage.data.definition, tokenizer, stage.seed)
    set_padding(model.config, collate.pad_id)
    if size is None:
        per_block = int(data.lengths.max()) * len(tokenizer) if isinstance(data, Packed) else 1
        size = max(1, min(BATCH, LOGITS // per_block))
    return ordered_batches(data, collate, size=size, seed=stage.seed, count=count)
