"""A defense in a recipe: fitted once, in front of everything, and in the ticket's folder."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import tombola
from tests.pipeline.running import execute, plans, stages
from tests.world import World, tagged_task
from tombola.defenses import DEFENSE
from tombola.defenses.tokenizing import defense_of
from tombola.errors import RecipeError
from tombola.evaluation.evaluate import predict_split
from tombola.models.loading import load_tokenizer, open_model
from tombola.pipeline.stages.defend import Defend
from tombola.pipeline.stages.train import Train
from tombola.store.store import Store
from tombola.tasks import Task, unlabelled
from tombola.tickets.shrinking import shrink_ticket

DEFENSES = ["unicode", {"kind": "spelling", "dictionary": None}]
ATTACK = {"recipes": ["deepwordbug"], "n": 24}


@pytest.fixture(scope="module")
def finished(world: World, tmp_path_factory: Any) -> tuple[Any, Any, Store]:
    """A plain and a defended model, attacked."""
    store = Store(tmp_path_factory.mktemp("store"))
    (plain,), (defended,) = plans(world, attack=ATTACK), plans(world, attack=ATTACK, defend=DEFENSES)
    execute([*plain.ends(), *defended.ends()], store)
    return plain, defended, store


def test_it_is_fitted_once_and_part_of_all_keys(world: World) -> None:
    importance = {"method": "importance"}
    plain = stages(world, search=importance, retrain={"distill": {}})
    behind = stages(world, search=importance, retrain={"distill": {}}, defend=DEFENSES)
    assert [stage.kind for stage in behind].count("defend") == 1
    assert not {stage.key for stage in plain} & {stage.key for stage in behind}
    (fitted,) = [stage for stage in behind if isinstance(stage, Defend)]
    assert all(stage.defend.key == fitted.key for stage in behind if isinstance(stage, Train))
    (one,) = {stage.key for stage in stages(world, defend="unicode") if isinstance(stage, Defend)}
    (same,) = {
        stage.key for stage in stages(world, defend=[{"kind": "unicode"}]) if isinstance(stage, Defend)
    }
    assert one == same != fitted.key
    assert {stage.key for stage in stages(world, defend=[])} == {stage.key for stage in stages(world)}


def test_the_models_folder_corrects_what_it_is_asked(finished: tuple[Any, Any, Store], world: World) -> None:
    _, defended, store = finished
    folder = store.open(defended.model)
    assert (folder / DEFENSE).is_file()
    tokenizer, model, task = load_tokenizer(folder), open_model(folder), Task.named(str(world.task))
    right, wrong = ["a lovely story", "the plot was awful"], ["a lovley sstory", "the plto was awf\u0443ul"]
    said = [predict_split(model, tokenizer, unlabelled(task, texts)) for texts in (right, wrong)]
    assert [one.probabilities for one in said[0]] == [one.probabilities for one in said[1]]


def test_attacks_go_through_it(finished: tuple[Any, Any, Store]) -> None:
    plain, defended, store = finished
    under = [store.read(one.attacks["deepwordbug"]).accuracy_under_attack for one in (plain, defended)]
    assert under[1] > under[0]
    lines = (store.open(defended.attacks["deepwordbug"]) / "examples.jsonl").read_text().splitlines()
    changed = [json.loads(line) for line in lines if json.loads(line)["result_type"] == "Successful"]
    defense = defense_of(load_tokenizer(store.open(defended.model)))
    for record in changed:  # raw texts, and the model is fooled by what they are corrected to
        assert record["changes"]
        assert defense.correct(record["perturbed"][0]) != record["original"][0]


def test_a_ticket_carries_it(world: World, tmp_path: Path) -> None:
    recipe = world.recipe(search={"method": "importance"}, defend=DEFENSES, draw={"sparsity": 0.2})
    train = {**recipe["train"], "epochs": 1}
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump({**recipe, "train": train}))
    tombola.run(path, store=tmp_path / "store", output=tmp_path / "out")
    (found,) = (tmp_path / "out").rglob("ticket.json")
    ticket = tombola.Ticket.from_pretrained(found.parent)
    assert defense_of(ticket.tokenizer()) is not None
    card = (ticket.folder / "README.md").read_text()
    assert "Correct texts before tokenising them (unicode and spelling, stored in" in card
    scores = tombola.evaluate(ticket.folder)
    assert scores["validation"]["accuracy"].value == pytest.approx(
        ticket.metrics["validation"]["accuracy"]["value"]
    )
    shrunk = shrink_ticket(ticket.folder, tmp_path / "small", batch_sizes=(1,), rounds=1)
    assert shrunk.after.texts.endswith("including their correction")
    assert defense_of(load_tokenizer(tmp_path / "small")) is not None


def test_it_is_counted_when_speed_is_measured(world: World, tmp_path: Path) -> None:
    train = {**world.recipe()["train"], "epochs": 0}
    (plan,) = plans(world, train=train, defend="unicode", measure={"batch_sizes": [1]})
    store = Store(tmp_path)
    execute([plan.measured], store)
    assert store.read(plan.measured).dense.texts.endswith("including their correction")


def test_tasks_whose_labels_point_into_the_text_are_refused(world: World, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="defend: tags is a token-classification task"):
        plans(World(world.model, tagged_task(tmp_path)), defend="unicode", evaluate={"on": []})
