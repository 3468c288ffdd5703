"""Attacks as stages: their figures follow from the examples, and their settings and sample from the recipe."""

from pathlib import Path

import pytest
import yaml

from tests.pipeline.running import execute, plans
from tests.world import World
from tombola.attacks.report import AttackReport
from tombola.pipeline.stages.attack import Attacked
from tombola.store.store import Store

BRIEF = {"steps": 12, "learning_rate": 3e-3, "batch_size": 16, "max_length": 16}


def test_the_figures_are_those_of_the_examples(world: World, tmp_path: Path) -> None:
    (plan,) = plans(world, train=BRIEF, attack={"recipes": ["deepwordbug"], "n": 8})
    (stage,) = plan.attacks.values()
    assert stage.label == "attack the dense model with deepwordbug"
    store = Store(tmp_path)
    execute([stage], store)
    found = store.read(stage)
    assert isinstance(found, Attacked)
    kinds = [one.result_type for one in AttackReport.load(store.open(stage)).examples]
    assert found.n == len(kinds) == 8
    assert found.clean_accuracy == pytest.approx(1 - kinds.count("Skipped") / 8)
    assert found.accuracy_under_attack == pytest.approx(kinds.count("Failed") / 8)
    low, high = found.accuracy_under_attack_interval
    assert low <= found.accuracy_under_attack <= high


def test_settings_and_samples_have_keys_of_their_own(world: World) -> None:
    def key(**attack: object) -> str:
        recipes = attack.pop("recipes", ["deepwordbug"])
        (plan,) = plans(world, train=BRIEF, attack={"recipes": recipes, "n": 8, **attack})
        (stage,) = plan.attacks.values()
        return stage.key

    assert key() == key(recipes=[{"name": "deepwordbug"}])
    others = [key(n=9), key(query_budget=5), key(recipes=[{"name": "deepwordbug", "max_edits": 2}])]
    assert len({key(), *others}) == 4


def test_the_columns_that_may_be_changed_name_the_stage(world: World, tmp_path: Path) -> None:
    rows = ["first\tsecond\tlabel", "a film\tthe plot\tpositive", "the plot\ta film\tnegative"]
    (tmp_path / "pairs.tsv").write_text("\n".join(rows) + "\n")
    adversary = {"kind": "attack", "recipe": "deepwordbug"}
    joint = {"method": "learned", "weights": True, "train": {"steps": 3, "adversary": adversary}}

    def keys(**more: object) -> list[str]:
        definition = {
            "name": "pairs",
            "version": 1,
            "text": ["first", "second"],
            "labels": ["negative", "positive"],
            "metrics": ["accuracy"],
            "source": {"files": {"train": "pairs.tsv"}},
        }
        task = tmp_path / "pairs.yaml"
        task.write_text(yaml.safe_dump({**definition, **more}))
        common = {"task": str(task), "evaluate": {"on": ["train"]}}
        (attacked,) = plans(world, train=BRIEF, attack={"recipes": ["deepwordbug"], "on": "train"}, **common)
        (trained,) = plans(world, train={**BRIEF, "adversary": adversary}, **common)
        (searched,) = plans(world, train=BRIEF, search=joint, retrain=None, **common)
        (stage,) = attacked.attacks.values()
        return [attacked.model.key, stage.key, trained.model.key, searched.model.key]

    usual, every, second = keys(), keys(attackable=["first", "second"]), keys(attackable=["second"])
    assert usual == every
    assert [one == other for one, other in zip(usual, second, strict=True)] == [True, False, False, False]
