"""Size and speed of dense models and tickets, on the task's texts or at a fixed length."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

from tests.shrink.masks import half
from tests.tiny import tiny
from tests.world import World
from tombola.models.loading import load_tokenizer
from tombola.pipeline.builder import CellBuilder
from tombola.pipeline.engines.work import work
from tombola.pipeline.stages.base import MaskStage, ModelStage
from tombola.pipeline.stages.measure import Measure, Measured
from tombola.recipe.recipe import Recipe
from tombola.shrink import count_flops
from tombola.store.stage import Workspace
from tombola.store.store import Store


@dataclass(frozen=True, eq=False, kw_only=True)
class TinyModel(ModelStage[None]):
    """Leaves a tiny classifier with the world's tokenizer."""

    kind: ClassVar = "tinymodel"
    version: ClassVar = 1
    label: ClassVar = "write a model"  # type: ignore[assignment]

    tokenizer: str

    def run(self, space: Workspace) -> None:
        tokenizer = load_tokenizer(Path(self.tokenizer))
        tiny("bert", vocab_size=len(tokenizer)).save_pretrained(space.folder)
        tokenizer.save_pretrained(space.folder)

    def read(self, folder: Path) -> None:
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class HalfMask(MaskStage):
    """Leaves a mask that removes about half of the units."""

    kind: ClassVar = "halfmask"
    version: ClassVar = 1
    label: ClassVar = "write a mask"  # type: ignore[assignment]

    granularity: str
    vocabulary: int = field(default=0)

    def run(self, space: Workspace) -> None:
        model = tiny("bert", vocab_size=self.vocabulary)
        self.save(space, half(model, self.granularity), model.num_parameters())


def measured(
    world: World, folder: Path, granularity: str | None, **settings: Any
) -> tuple[Measure, Measured]:
    """The stage that a recipe plans for a ticket, and its result."""
    recipe = Recipe.model_validate(world.recipe(measure={"batch_sizes": [2], **settings}))
    store, model = Store(folder), TinyModel(tokenizer=str(world.model))
    vocabulary = len(load_tokenizer(world.model))
    mask = HalfMask(granularity=granularity, vocabulary=vocabulary) if granularity else None
    stage = CellBuilder(recipe, "fp32").measure(model, mask)
    for one in stage.with_inputs():
        work(one, store, lambda step, total, figures: None)
    return stage, store.read(stage)


def test_a_structured_ticket_is_shrunk_and_timed_in_turns_with_the_dense_model(
    world: World, tmp_path: Path
) -> None:
    stage, found = measured(world, tmp_path, "head+neuron")
    assert stage.data is not None
    assert (stage.data.split, stage.data.limit, stage.max_length) == ("validation", 512, 16)
    assert set(found.speedup) == set(found.dense.latency) == set(found.ticket.latency) == {2}
    assert found.dense.texts == found.ticket.texts == "48 texts of tiny/validation, 6 tokens on average"
    assert found.dense.flops == count_flops(tiny("bert"), 1, 6)
    assert found.ticket.flops < found.dense.flops
    assert found.ticket.bytes < found.dense.bytes


def test_a_ticket_of_weights_is_as_fast_as_the_dense_model_and_packed(world: World, tmp_path: Path) -> None:
    _, found = measured(world, tmp_path, "weight")
    assert found.speedup == {}
    assert found.ticket == found.dense.model_copy(update={"bytes": found.ticket.bytes})
    assert found.ticket.bytes != found.dense.bytes


def test_a_dense_model_has_nothing_to_be_compared_with(world: World, tmp_path: Path) -> None:
    _, found = measured(world, tmp_path, None)
    assert found.speedup == {}
    assert found.ticket == found.dense


def test_a_fixed_length_needs_no_data(world: World, tmp_path: Path) -> None:
    stage, found = measured(world, tmp_path, "head", length=9)
    assert (stage.data, stage.max_length, stage.references) == (None, None, {})
    assert (found.dense.length, found.dense.texts) == (9, "random tokens, 9 per text")


def test_models_are_timed_with_the_threads_that_the_recipe_names(world: World, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    _, found = measured(world, tmp_path, "head", length=9, threads=1)
    assert found.dense.threads == found.ticket.threads == 1
    assert torch.get_num_threads() == before


def test_times_hold_for_one_processor_and_one_number_of_threads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe.model_validate(world.recipe(measure={}))

    def key(processor: str, threads: int) -> str:
        monkeypatch.setattr("tombola.pipeline.builder.timed_on", lambda device: processor)
        monkeypatch.setattr("tombola.pipeline.builder.threads_of", lambda chosen: chosen or threads)
        return CellBuilder(recipe, "fp32").measure(TinyModel(tokenizer=str(world.model)), None).key

    assert key("one", 1) == key("one", 1)
    assert len({key("one", 1), key("one", 2), key("other", 1)}) == 3


@pytest.mark.parametrize(
    ("changes", "split", "limit"),
    [
        ({"evaluate": {"on": ["other", "validation"]}}, "other", 512),
        ({"data": {"evaluation": 30}}, "validation", 30),
        ({"evaluate": {"on": []}}, "train", 512),
    ],
)
def test_texts_are_those_that_the_recipe_evaluates_on_first(
    world: World, changes: dict[str, Any], split: str, limit: int
) -> None:
    recipe = Recipe.model_validate(world.recipe(measure={}, **changes))
    stage = CellBuilder(recipe, "fp32").measure(TinyModel(tokenizer=str(world.model)), None)
    assert stage.data is not None
    assert (stage.data.split, stage.data.limit) == (split, limit)
