"""What decides on an evaluation's identity, and all data that it is checked for leaks against."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.pipeline.running import execute, plans
from tests.world import World, sentences
from tombola.pipeline.planner import training_data
from tombola.store.store import Store

LEARNED = {
    "method": "learned",
    "gate": {"kind": "threshold"},
    "budget": {"kind": "exact"},
    "train": {"steps": 2},
}


def changed(world: World, folder: Path, **changes: Any) -> World:
    """The same data under a task file that says something else."""
    content = {**yaml.safe_load(world.task.read_text()), **changes}
    for split in content["source"]["files"]:
        (folder / f"{split}.tsv").write_text((world.task.parent / f"{split}.tsv").read_text())
    (folder / "task.yaml").write_text(yaml.safe_dump(content))
    return World(world.model, folder / "task.yaml")


@pytest.mark.parametrize("changes", [{"metrics": ["accuracy"]}, {"groups": ["label"]}])
def test_metrics_and_groups_name_another_evaluation_of_the_same_training(
    world: World, tmp_path: Path, changes: dict[str, Any]
) -> None:
    (one,), (other,) = plans(world), plans(changed(world, tmp_path, **changes))
    assert one.model.key == other.model.key
    assert one.evaluations["validation"].key != other.evaluations["validation"].key


def test_whether_a_model_may_answer_nothing_names_another_evaluation(world: World, tmp_path: Path) -> None:
    answer = {"text": "film", "answer_start": 4}
    row = {"id": "1", "question": "what was fine", "context": "the film was fine", "answers": [answer]}
    (tmp_path / "qa.jsonl").write_text(json.dumps(row) + "\n")
    raw = {
        "name": "qa",
        "version": 1,
        "kind": "question-answering",
        "text": ["question", "context"],
        "metrics": ["squad_f1"],
        "source": {"files": {"train": "qa.jsonl", "validation": "qa.jsonl"}},
    }
    keys = []
    for unanswerable in (False, True):
        (tmp_path / "qa.yaml").write_text(yaml.safe_dump({**raw, "unanswerable": unanswerable}))
        (plan,) = plans(World(world.model, tmp_path / "qa.yaml"), evaluate={"every": "epoch"})
        keys.append((plan.model.key, plan.evaluations["validation"].key))
    assert all(one != other for one, other in zip(*keys, strict=True))


def test_words_about_a_task_change_nothing(world: World, tmp_path: Path) -> None:
    (one,), (other,) = (
        plans(world),
        plans(changed(world, tmp_path, about="other words", citation="Me (2026).")),
    )
    assert one.evaluations["validation"].key == other.evaluations["validation"].key


def test_settings_of_a_recipe_are_part_of_the_training(tmp_path: Path, world: World) -> None:
    (tmp_path / "train.txt").write_text("\n".join(text for text, _ in sentences(50, 0)))
    raw = {
        "name": "corpus",
        "version": 1,
        "kind": "masked-lm",
        "text": "text",
        "metrics": ["masked_accuracy"],
        "source": {"files": {"train": "train.txt", "validation": "train.txt"}},
    }
    (tmp_path / "corpus.yaml").write_text(yaml.safe_dump(raw))
    corpus = World(world.model, tmp_path / "corpus.yaml")
    keys = []
    for settings in ({}, {"mlm_probability": 0.15}, {"mlm_probability": 0.3}, {"block_size": 8}):
        (plan,) = plans(corpus, data={"task_settings": settings})
        keys.append(plan.model.key)
        assert plan.model.data.definition.settings == settings
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    (tmp_path / "corpus.yaml").write_text(yaml.safe_dump({**raw, "settings": {"mlm_probability": 0.3}}))
    assert plans(corpus)[0].model.key == keys[2]


@pytest.fixture
def leaky(world: World, tmp_path: Path) -> World:
    """A task whose split `other` has 4 of the 48 validation examples."""
    task = changed(world, tmp_path)
    validation = (world.task.parent / "validation.tsv").read_text().splitlines()
    other = (world.task.parent / "other.tsv").read_text().splitlines()
    (tmp_path / "other.tsv").write_text("\n".join([*other, *validation[1:5]]) + "\n")
    return task


def test_data_that_a_search_mixes_in_is_checked_too(
    leaky: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mixed = {**LEARNED, "mix": [{"on": "other", "times": 2}]}
    (plain,) = plans(leaky, search=LEARNED, draw={"sparsity": 0.3}, retrain=None)
    (plan,) = plans(leaky, search=mixed, draw={"sparsity": 0.3}, retrain=None)
    stage = plan.evaluations["validation"]
    assert plain.evaluations["validation"].also_trained == ()
    assert [data.mix[0].on for data in stage.also_trained] == ["other"]
    with caplog.at_level(logging.WARNING):
        execute([stage], Store(tmp_path / "store"))
    notes = Store(tmp_path / "store").read(stage).notes
    before = sum(int(note.split()[0]) for note in _notes(plain, tmp_path))
    (note,) = [note for note in notes if int(note.split()[0]) > before]
    assert "examples of tiny/validation also occur in the training data (tiny/train)." in note
    assert note in caplog.messages


def test_what_is_held_out_is_not_mixed_in_again(world: World) -> None:
    data = {"holdout": 0.25, "mix": [{"on": "train+typos"}]}
    (plan,) = plans(world, data=data, evaluate={"on": ["holdout"]})
    stage = plan.evaluations["holdout"]
    held_out, trained = set(stage.data.load().ids), stage.trained.load().ids
    own = [identity for identity in trained if ":" not in identity]
    mixed = [identity.split(":")[1] for identity in trained if ":" in identity]
    assert mixed == own
    assert held_out.isdisjoint(own)


def _notes(plan: Any, folder: Path) -> list[str]:
    execute([plan.evaluations["validation"]], Store(folder / "store"))
    return Store(folder / "store").read(plan.evaluations["validation"]).notes


def test_only_what_reads_data_has_seen_any(world: World, tmp_path: Path) -> None:
    source = changed(world, tmp_path, name="source")
    (tmp_path / "train.tsv").write_text((world.task.parent / "other.tsv").read_text())
    for search, seen in (
        ({"method": "magnitude"}, False),
        ({"method": "importance"}, True),
        ({"method": "iterative", "step": 0.3}, True),
    ):
        (plan,) = plans(world, search={**search, "task": str(source.task)}, draw={"sparsity": 0.3})
        assert plan.mask is not None
        tasks = [data.task for data in training_data(plan.mask)]
        assert (str(source.task) in tasks) == seen, search
        assert [data.task for data in plan.evaluations["validation"].also_trained] == [
            str(source.task)
        ] * seen
