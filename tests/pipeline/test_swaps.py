"""Training with word swaps, from the recipe to the trained model."""

from pathlib import Path

import pytest
import torch
import yaml

from tests.pipeline.running import execute, plans, stages, workspace
from tests.world import World, make_world, tagged_task
from tombola.errors import RecipeError
from tombola.objectives.swaps import SWAPS, SwapAdversary
from tombola.pipeline.stages.learning import training_collate
from tombola.pipeline.stages.train import Train
from tombola.recipe.share import check_share
from tombola.store.store import Store

SWAP = {"kind": "swaps", "share": 1.0}


def trained(world: World, store: Store, **train) -> dict[str, torch.Tensor]:
    """The weights of a short fine-tuning."""
    settings = {**world.recipe()["train"], "epochs": 1, **train}
    ends = [stage for stage in stages(world, search=None, train=settings) if isinstance(stage, Train)]
    execute(ends, store)
    return ends[-1].load(workspace(store), ends[-1].data.definition).state_dict()


def test_swapped_words_change_the_training_and_equal_seeds_do_not(world: World, tmp_path: Path) -> None:
    plain = trained(world, Store(tmp_path / "plain"))
    first = trained(world, Store(tmp_path / "first"), adversary=SWAP)
    again = trained(world, Store(tmp_path / "again"), adversary=SWAP)
    assert any(not torch.equal(plain[name], first[name]) for name in plain)
    assert all(torch.equal(first[name], again[name]) for name in first)


@pytest.mark.parametrize(
    "extra",
    [
        {"r_drop": 1.0},
        {"distill": {"hidden": 1.0}},
        {"augment": {"of": ["typos"], "consistency": 1.0}},
        {"augment": {"of": ["typos", "synonyms"]}, "distill": {"weight": 0.5}},
        {"select": {"kind": "first", "upper": 60}},
    ],
)
def test_it_goes_with_the_other_parts(world: World, tmp_path: Path, extra: dict) -> None:
    settings = {**world.recipe()["train"], "steps": 3, "epochs": 1}
    retrain = {**settings, "adversary": SWAP, **extra}
    (plan,) = plans(
        world,
        train=settings,
        search={"method": "magnitude"},
        retrain=retrain,
        draw={"sparsity": 0.5},
        defend=["spelling"],
    )
    assert not execute(plan.ends(), Store(tmp_path)).failures


def test_gates_can_be_searched_with_it(world: World, tmp_path: Path) -> None:
    search = {"method": "learned", "train": {"steps": 3, "adversary": SWAP}}
    (plan,) = plans(world, search=search, draw={"sparsity": 0.3}, retrain=None)
    assert not execute(plan.ends(), Store(tmp_path)).failures


def test_the_column_reaches_the_batch_only_with_the_adversary(world: World) -> None:
    for adversary, wanted in ((None, False), (SWAP, True)):
        settings = {**world.recipe()["train"], "adversary": adversary}
        (stage,) = [one for one in stages(world, search=None, train=settings) if isinstance(one, Train)]
        batch = training_collate(stage)([{"input_ids": [5, 6], "labels": 0}])
        assert (SWAPS in batch) == wanted
        if wanted:
            assert batch[SWAPS].shape == (1, 2, SwapAdversary().candidates)


def test_tasks_whose_words_are_labels_are_refused(world: World, tmp_path: Path) -> None:
    task = tagged_task(tmp_path)
    with pytest.raises(RecipeError, match=r"tags is a token-classification task.*use freelb or pgd"):
        plans(world, task=str(task), search=None, train={"adversary": SWAP}, evaluate={"on": ["train"]})


def test_other_languages_are_refused(world: World) -> None:
    definition = yaml.safe_load(world.task.read_text())
    task = world.task.with_name("german.yaml")
    task.write_text(yaml.safe_dump({**definition, "name": "german", "language": "de"}))
    with pytest.raises(RecipeError, match="word neighbours are English, but german is in 'de'"):
        plans(world, task=str(task), search=None, train={"adversary": SWAP})


def test_columns_that_attacks_may_not_change_are_not_swapped_either(world: World) -> None:
    definition = yaml.safe_load(world.task.read_text())
    rows = [line.split("\t") for line in (world.task.parent / "train.tsv").read_text().splitlines()]
    lines = ["\t".join([rows[0][0], "second", rows[0][1]])]
    lines += ["\t".join([text, "a film", label]) for text, label in rows[1:]]
    (world.task.parent / "pairs.tsv").write_text("\n".join(lines) + "\n")
    pairs = {"text": ["sentence", "second"], "source": {"files": {"train": "pairs.tsv"}}, "name": "pairs"}

    def planned(**more) -> None:
        task = world.task.with_name("pairs.yaml")
        task.write_text(yaml.safe_dump({**definition, **pairs, **more}))
        plans(world, task=str(task), search=None, train={"adversary": SWAP}, evaluate={"on": ["train"]})

    planned()
    with pytest.raises(
        RecipeError, match=r"swaps replaces words in all texts, but .* only change second of pairs"
    ):
        planned(attackable=["second"])


def test_shared_encoders_take_it_only_for_single_tasks() -> None:
    with pytest.raises(
        RecipeError, match=r"train.adversary: swaps only works in the training of a single task"
    ):
        check_share(
            {"model": "minilm", "tasks": ["reviews", "reviews_product"], "train": {"adversary": SWAP}}
        )


def test_rounds_of_imp_and_weights_trained_with_gates_take_it(world: World, tmp_path: Path) -> None:
    training = {**world.recipe()["train"], "epochs": 1, "steps": 2, "adversary": SWAP}
    searches = [
        {"method": "iterative", "train": training},
        {"method": "learned", "weights": True, "train": {"steps": 3, "adversary": SWAP}},
    ]
    for search in searches:
        (plan,) = plans(world, train=training, search=search, draw={"sparsity": 0.2}, retrain=None)
        trained = [one for one in plan.stages() if getattr(one, "train", None) is not None]
        assert all(one.train.adversary == SwapAdversary(share=1.0) for one in trained)
        assert not execute(plan.ends(), Store(tmp_path)).failures


@pytest.mark.parametrize("model_type", ["gpt2", "llama"])
def test_decoders_take_it_too(model_type: str, tmp_path: Path) -> None:
    world = make_world(tmp_path / model_type, model_type)
    trained(world, Store(tmp_path / "store"), steps=2, adversary=SWAP)
