"""Augmentation in recipes."""

from pathlib import Path

import pytest

from tests.pipeline.running import execute, plans
from tests.world import World, tagged_task
from tombola.errors import RecipeError
from tombola.pipeline.stages.train import Train
from tombola.store.store import Store


def test_a_ticket_is_trained_on_changed_texts_and_the_teacher_is_not(world: World, tmp_path: Path) -> None:
    augment = {"of": ["typos", "synonyms"], "share": 0.5, "consistency": 0.5}
    train = {**world.recipe()["train"], "epochs": 1, "augment": augment, "distill": {}}
    (plan,) = plans(world, train=train)
    store = Store(tmp_path)
    execute(plan.ends(), store)
    assert isinstance(plan.model, Train)
    assert plan.model.distill_from.train.augment is None
    assert store.read(plan.model).log.steps == 12
    (other,) = plans(world, train={**train, "augment": {**augment, "share": 0.4}})
    assert other.model.key != plan.model.key


def test_a_search_takes_them_too(world: World, tmp_path: Path) -> None:
    train = {**world.recipe()["train"], "epochs": 1}
    search = {"method": "learned", "train": {"epochs": 1, "augment": {"of": ["typos"], "consistency": 1}}}
    (plan,) = plans(world, train=train, search=search)
    execute(plan.ends(), Store(tmp_path))


def test_words_with_labels_of_their_own_are_refused(world: World, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="whose labels refer to tokens of the texts"):
        plans(
            World(world.model, tagged_task(tmp_path)),
            train={"augment": {"of": ["typos"]}},
            evaluate={"on": []},
        )
