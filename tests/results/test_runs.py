"""Results of real runs on a tiny model: what stages keep, and what is read from a store, near or far."""

import pytest

import tombola
from tombola.results.result import Result
from tombola.store.store import Store

ON = ["validation"]


def recipe(world):
    return world.recipe(
        train={"epochs": 1, "learning_rate": 3e-3, "batch_size": 16, "max_length": 16},
        seed=[1, 2],
        search={"method": "importance"},
        draw={"sparsity": 0.25},
        evaluate={"on": ON},
        attack={"recipes": ["deepwordbug"], "n": 4},
        variants={"dense": {"search": None}, "winning": {}},
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def ran(world, store, tmp_path_factory):
    return tombola.run(recipe(world), store=store, output=tmp_path_factory.mktemp("run"))


def test_importance_with_one_data_set_and_an_attack_has_phases_and_no_super_ticket(ran):
    (phases,) = ran.phases()
    assert (phases.on, phases.super_ticket, len(phases.points)) == ("validation", None, 1)
    assert ran.record.phases == [phases]
    assert Result.load(ran.folder).record == ran.record


def test_a_study_has_the_phases_and_decisions_of_a_run(world, store, ran, tmp_path):
    study = tombola.study(recipe(world), store=store, output=tmp_path)
    assert study.record.stages.run_now == 0
    assert study.record.phases == ran.record.phases
    assert study.record.matching == ran.record.matching


def test_every_cell_knows_what_one_answer_to_all_would_score(world, ran):
    labels = [
        line.split("\t")[1]
        for line in (world.task.parent / "validation.tsv").read_text().split("\n")[1:]
        if line
    ]
    most = max(labels.count(label) for label in set(labels)) / len(labels)
    assert {cell.constants["validation"] for cell in ran.cells} == {most}


def test_predictions_are_compared_example_by_example(ran, store):
    (one,) = ran.differences("validation", store)
    assert (one.first["variant"], one.second["variant"], one.seeds) == ("dense", "winning", 2)
    assert 0 < one.mcnemar <= 1
    assert one.note is None
    (attacked,) = ran.differences("deepwordbug", store)
    assert (attacked.mcnemar, attacked.note) == (None, None)


def test_predictions_are_read_from_a_store_far_away(ran, store, tmp_path, monkeypatch):
    monkeypatch.setenv("TOMBOLA_CACHE", str(tmp_path / "cache"))
    far = Store(f"memory://{tmp_path.name}")
    for cell in ran.cells:
        for stage in cell.stages.evaluations.values():
            far.remote.push(stage, store.open(stage))
    assert ran.differences("validation", far) == ran.differences("validation", store)
