"""Estimates of what a plan costs: steps and times, from the store, a short trial, or the texts that a stage reads."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import tombola
from tests.pipeline.running import execute
from tests.world import sentences
from tombola.foundations.caching import run_cache
from tombola.pipeline.costs import _Times, estimate
from tombola.pipeline.plan import Plan
from tombola.pipeline.stages.train import Train
from tombola.pipeline.study import plan_study, read_study
from tombola.store.store import Store

OMP = {"method": "magnitude"}
SHORT = {"epochs": 1, "learning_rate": 3e-3, "batch_size": 16, "max_length": 16}
WORDS = np.mean([len(sentence.split()) for sentence, _ in sentences(48, seed=1)])  # of the validation split


def planned_study(raw) -> Plan:
    return plan_study(read_study(raw, ()))


def test_the_cost_is_known_from_the_store_or_measured(world, tmp_path):
    store = Store(tmp_path)
    plan = planned_study(world.recipe(train=SHORT, seed=[1, 2]))
    with run_cache():
        costs = {cost.kind: cost for cost in estimate(plan, store)}
    assert (costs["train"].stages, costs["train"].steps, costs["train"].asked_steps) == (2, 24, 24)
    assert costs["train"].seconds > 0
    assert costs["evaluate"].seconds > 0
    measured = [path for path in (store.root / "train").iterdir() if path.suffix == ""]
    assert len(measured) == 1  # both seeds have the same pace
    assert json.loads((measured[0] / "log.json").read_text())["steps"] == 8


def test_a_finished_training_with_default_settings_is_counted(world, tmp_path):
    store = Store(tmp_path / "store")
    plan = planned_study(world.recipe(evaluate={"on": []}, train={}))
    with run_cache():
        execute(plan.stages, store)
        (cost,) = estimate(plan, store, afresh=True)
    (log,) = [json.loads(file.read_text()) for file in (store.root / "train").glob("*/log.json")]
    assert cost.seconds == pytest.approx(log["seconds"])


def test_attacks_in_the_loop_are_counted_once_a_training_with_them_is_known(world, tmp_path):
    store, adversary = Store(tmp_path / "store"), {"kind": "attack", "recipe": "deepwordbug", "share": 0.1}
    raw = world.recipe(train={**SHORT, "adversary": adversary})

    def cost(**changes):
        with run_cache():
            found = estimate(planned_study(raw | changes), store)
        return next(one for one in found if one.kind == "train")

    before = cost(seed=1)
    assert before.seconds > 0
    assert before.without_attacks
    tombola.run(raw | {"seed": 1}, store=store, output=tmp_path / "out", tickets=False)
    assert cost(seed=1).without_attacks is False  # nothing is left to run
    known = cost(seed=2)
    assert not known.without_attacks
    logs = [json.loads(file.read_text()) for file in (store.root / "train").glob("*/log.json")]
    (seen,) = [log for log in logs if log["steps"] == known.steps]  # the other is the trial
    assert known.seconds == pytest.approx(seen["seconds"])
    assert not cost(train=SHORT).without_attacks


@pytest.mark.parametrize(
    ("training", "teacher"),
    [
        ({}, 1 / 3),
        ({"adversary": {"kind": "swaps", "steps": 1}}, 1 / 6),
        ({"adversary": {"kind": "freelb", "steps": 5}}, 1 / 15),
        ({"adversary": {"kind": "pgd", "steps": 3}, "r_drop": 1.0}, 1 / 24),
        ({"adversary": {"kind": "attack"}}, 1 / 3),
    ],
)
def test_a_teacher_reads_a_batch_once_however_often_the_student_does(world, monkeypatch, training, teacher):
    (plan,) = planned_study(
        world.recipe(train=SHORT, search=OMP, retrain={**SHORT, "distill": {}, **training})
    ).cells
    (stage,) = [one for one in plan.stages() if isinstance(one, Train) and one.train.distill is not None]
    log = SimpleNamespace(seconds=16.0, steps=8)
    store = SimpleNamespace(read=lambda trial: SimpleNamespace(log=log))
    monkeypatch.setattr("tombola.pipeline.costs.work", lambda *_: None)
    assert _Times(store, set()).of(stage, 10) == pytest.approx(10 * 2.0 * (1 + teacher))


@pytest.mark.parametrize(
    ("kind", "changes", "texts"),
    [
        ("evaluate", {}, 48),
        ("attack", {"attack": {"recipes": ["deepwordbug"], "n": 2}}, 2 * (1 + 2.5 * WORDS)),
        ("score", {"search": {"method": "importance", "batches": 2}, "draw": {"sparsity": 0.5}}, 2 * 32 * 3),
        ("draw", {"search": OMP}, 0),
    ],
)
def test_other_stages_are_estimated_by_the_texts_they_read(world, monkeypatch, kind, changes, texts):
    plan = planned_study(
        world.recipe(train={**SHORT, "adversary": {"kind": "freelb", "steps": 3}}, **changes)
    )
    stage = next(one for one in plan.stages if one.kind == kind)
    log = SimpleNamespace(seconds=24.0, steps=8)
    store = SimpleNamespace(read=lambda trial: SimpleNamespace(log=log))
    monkeypatch.setattr("tombola.pipeline.costs.work", lambda *_: None)
    a_text = 3.0 / 3 / (SHORT["batch_size"] * 3)  # a third of a step's time, of three passes over a batch
    assert _Times(store, set()).of(stage, 0) == pytest.approx(stage.overhead + texts * a_text)


def test_the_time_to_evaluate_a_model_that_is_not_trained_is_unknown(world, tmp_path):
    plan = planned_study(world.recipe(train={"epochs": 0}))
    with run_cache():
        costs = {cost.kind: cost for cost in estimate(plan, Store(tmp_path))}
    assert costs["evaluate"].seconds is None


def test_a_training_without_steps_takes_no_time_and_what_is_finished_can_be_counted_afresh(world, tmp_path):
    store = Store(tmp_path / "store")
    plan = planned_study(world.recipe(train={**SHORT, "epochs": 0}))
    with run_cache():
        assert estimate(plan, store)[0].seconds == 0
    plan = planned_study(world.recipe(train=SHORT, evaluate={"on": []}))
    with run_cache():
        execute(plan.stages, store)
        assert estimate(plan, store)[0].seconds == 0
        assert estimate(plan, store, afresh=True)[0].seconds > 0


@pytest.mark.parametrize("file", ["manifest.json", "log.json"])
def test_a_damaged_stage_does_not_stop_the_estimate(world, tmp_path, file):
    store = Store(tmp_path / "store")
    plan = planned_study(world.recipe(train={**SHORT, "epochs": 0}, evaluate={"on": []}))
    with run_cache():
        execute(plan.stages, store)
        (store.path(plan.stages[0]) / file).write_text('{"stage": ')
        assert [cost.kind for cost in estimate(plan, store)] == ["train"]
