"""One file from outside the package adds an entry of any kind, and it runs end to end."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.pipeline.running import execute
from tests.tiny import tiny
from tests.world import World
from tombola.errors import TombolaError
from tombola.foundations.plugins import loaded_plugins
from tombola.masks import Mask, Units
from tombola.pipeline.planner import CellPlan, plan_cell
from tombola.pipeline.stages.bias import DESCRIPTION
from tombola.recipe.catalogue import catalogue
from tombola.recipe.grid import expand
from tombola.recipe.reading import load_recipe
from tombola.recipe.schema import recipe_schema
from tombola.store.store import Store

FILES = Path(__file__).parent / "files"
BRIEF = {"steps": 2, "learning_rate": 1e-3, "batch_size": 16, "max_length": 16}


def planned(world: World, plugin: str | None, **changes: Any) -> CellPlan:
    """The plan of a tiny recipe, with a plugin that is one file."""
    plugins = [str(FILES / plugin)] if plugin else []
    raw = load_recipe(world.recipe(plugins=plugins, **{"train": BRIEF, **changes}))
    (cell,) = expand(raw)
    return plan_cell(cell)


def ran(plan: CellPlan, folder: Path) -> Store:
    store = Store(folder / "store")
    execute(plan.ends(), store)
    return store


def listed(kind: str) -> list[str]:
    return [name for name, _ in catalogue(kind)[kind]]


def plugin_uses(plan: CellPlan) -> dict[str, list[str]]:
    """The plugins in the identity of each kind of stage."""
    return {stage.kind: stage.identity().get("plugins", []) for stage in plan.stages()}


def test_a_scorer(world: World, tmp_path: Path) -> None:
    plan = planned(world, "search.py", search={"method": "largest"}, draw={"sparsity": 0.5}, retrain=None)
    store = ran(plan, tmp_path)
    assert plan.mask is not None
    mask = Mask.load(store.open(plan.mask) / "mask.safetensors")
    smallest = planned(world, None, search={"method": "magnitude"}, draw={"sparsity": 0.5}, retrain=None)
    ran(smallest, tmp_path)
    opposite = Mask.load(store.open(smallest.mask) / "mask.safetensors")
    assert mask.sparsity == pytest.approx(0.5, abs=1e-3)
    assert (mask & opposite).sparsity > 0.99
    uses = plugin_uses(plan)
    assert len(uses["draw"]) == 1
    assert uses["train"] == []
    assert "largest" in listed("methods")


def test_a_plan_of_several_rounds(world: World, tmp_path: Path) -> None:
    plan = planned(world, "search.py", search={"method": "two_rounds"}, draw={"sparsity": 0.4}, retrain=None)
    store = ran(plan, tmp_path)
    assert plan.mask is not None
    assert store.read(plan.mask).sparsity == pytest.approx(0.4, abs=1e-3)


def test_a_gate_and_a_budget(world: World, tmp_path: Path) -> None:
    search = {"method": "learned", "gate": {"kind": "sigmoid"}, "start": "pretrained", "train": {"steps": 2}}
    plan = planned(world, "gate.py", search=search, draw={"sparsity": 0.3}, retrain=None)
    assert plan.cell.recipe.search.train.learning_rate == 0.05
    assert plan.cell.recipe.search.effective_budget.kind == "constant"
    (again,) = expand(plan.cell.raw())
    assert again.recipe == plan.cell.recipe
    store = ran(plan, tmp_path)
    assert store.read(plan.mask).sparsity == pytest.approx(0.3, abs=1e-3)
    uses = plugin_uses(plan)
    assert len(uses["search"]) == 1
    assert uses["train"] == []
    other = planned(world, "gate.py", search={**search, "budget": {"kind": "constant", "weight": 0.5}})
    assert other.mask.inputs["scores"].key != plan.mask.inputs["scores"].key
    assert "sigmoid" in listed("gates")
    assert "constant" in listed("budgets")


def test_a_loss_and_an_adversary(world: World, tmp_path: Path) -> None:
    train = {**BRIEF, "loss": {"kind": "focal", "gamma": 1.5}, "adversary": {"kind": "fgm", "step_size": 0.1}}
    plan = planned(world, "loss.py", train=train)
    store = ran(plan, tmp_path)
    assert store.read(plan.model).log.steps == 2
    assert len(plugin_uses(plan)["train"]) == 1
    alone = planned(world, "loss.py", train={**BRIEF, "adversary": {"kind": "fgm"}})
    assert len(plugin_uses(alone)["train"]) == 1
    assert plugin_uses(planned(world, "loss.py"))["train"] == []
    assert "focal" in listed("losses")
    assert "fgm" in listed("adversaries")


def test_a_metric(world: World, tmp_path: Path) -> None:
    content = {**yaml.safe_load(world.task.read_text()), "metrics": ["accuracy", "positive_share"]}
    for split in ("train", "validation", "other"):
        (tmp_path / f"{split}.tsv").write_text((world.task.parent / f"{split}.tsv").read_text())
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(content))
    own = World(world.model, tmp_path / "task.yaml")
    with pytest.raises(TombolaError, match="metrics: unknown metric 'positive_share'"):
        planned(own, None)
    plan = planned(own, "metric.py")
    store = ran(plan, tmp_path)
    scores = store.read(plan.evaluations["validation"]).scores
    assert 0 <= scores["positive_share"].value <= 1
    uses = plugin_uses(plan)
    assert len(uses["evaluate"]) == 1
    assert uses["train"] == []
    assert "positive_share" in listed("metrics")


def test_an_attack(world: World, tmp_path: Path) -> None:
    recipes = [
        "swap_words",
        {"name": "swap_words", "most": 1},
        {"name": "swap_words", "most": 2, "called": "two"},
    ]
    plan = planned(world, "attack.py", attack={"recipes": recipes, "n": 6})
    assert list(plan.attacks) == ["swap_words", "swap_words(most=1)", "two"]
    assert len({stage.key for stage in plan.attacks.values()}) == 3
    store = ran(plan, tmp_path)
    assert store.read(plan.attacks["two"]).n == 6
    uses = plugin_uses(plan)
    assert len(uses["attack"]) == 1
    assert uses["train"] == uses["evaluate"] == []
    assert "swap_words" in listed("attacks")


def test_an_augmentation(world: World, tmp_path: Path) -> None:
    train = {**BRIEF, "augment": {"of": [{"kind": "stutter", "share": 1}], "share": 1}}
    plan = planned(world, "augmentation.py", train=train)
    store = ran(plan, tmp_path)
    assert store.read(plan.model).log.steps == 2
    plain = planned(world, None)
    ran(plain, tmp_path)
    losses = [store.read(one.model).log.curve[0].loss for one in (plan, plain)]
    assert losses[0] != losses[1]
    uses = plugin_uses(plan)
    assert len(uses["train"]) == 1
    assert uses["evaluate"] == []
    assert plugin_uses(planned(world, "augmentation.py"))["train"] == []
    assert "stutter" in listed("augmentations")


def test_a_defense(world: World, tmp_path: Path) -> None:
    plan = planned(world, "defense.py", defend="known_words")
    store = ran(plan, tmp_path)
    (defend,) = [stage for stage in plan.stages() if stage.kind == "defend"]
    assert store.read(defend).correct("a flim was dull") == "a was dull"
    uses = plugin_uses(plan)
    assert len(uses["defend"]) == 1
    assert uses["train"] == uses["evaluate"] == []
    assert "known_words" in listed("defenses")


def test_a_family(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import (
        AutoConfig,
        AutoModelForSequenceClassification,
        BertConfig,
        BertForSequenceClassification,
    )

    class MyConfig(BertConfig):
        model_type = "mybert"

    class MyBert(BertForSequenceClassification):
        config_class = MyConfig

    AutoConfig.register("mybert", MyConfig, exist_ok=True)
    AutoModelForSequenceClassification.register(MyConfig, MyBert, exist_ok=True)
    model = MyBert(MyConfig(**tiny("bert").config.to_diff_dict() | {"model_type": "mybert"}))
    with pytest.raises(TombolaError, match="does not know where a 'mybert' model"):
        Units.of(model, "head")
    plain = planned(world, None, search={"method": "random", "units": "head"})
    before = {stage.key for stage in plain.stages()}
    plan = planned(world, "family.py", search={"method": "random", "units": "head"})
    assert {stage.key for stage in plan.stages()} == before
    assert Units.of(model, "head").count == 8
    assert "mybert" in listed("families")
    own = World(tmp_path / "model", world.task)
    model.save_pretrained(own.model)
    for file in world.model.glob("tok*"):
        (own.model / file.name).write_bytes(file.read_bytes())
    renamed = planned(own, "family.py", search={"method": "random", "units": "head"}, draw={"sparsity": 0.5})
    uses = plugin_uses(renamed)
    assert len(uses["draw"]) == 1
    assert uses["train"] == []


def test_a_bias_model(world: World, tmp_path: Path) -> None:
    train = {**BRIEF, "loss": {"kind": "poe"}}
    plan = planned(world, "bias.py", bias={"method": "text_length", "folds": 3}, train=train)
    store = ran(plan, tmp_path)
    described = json.loads((store.open(plan.model.inputs["bias"]) / DESCRIPTION).read_bytes())
    assert described["settings"] == {"method": "text_length", "folds": 3}
    assert "validation" in described["accuracy"]
    uses = plugin_uses(plan)
    assert len(uses["bias"]) == 1
    assert uses["train"] == []
    assert "text_length" in listed("bias models")


def test_a_control(world: World, tmp_path: Path) -> None:
    search = {"method": "random"}
    plan = planned(world, "control.py", search=search, retrain={**BRIEF, "control": {"kind": "negate"}})
    store = ran(plan, tmp_path)
    assert store.read(plan.model).log.steps == 2
    uses = {
        stage.key: stage.identity().get("plugins")
        for stage in plan.stages()
        if stage.kind in ("train", "draw")
    }
    assert [key for key, plugins in uses.items() if plugins] == [plan.model.key]
    assert "negate" in listed("controls")


def test_a_task(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_TASK", str(world.task))
    plan = planned(world, "task.py", task="tiny", evaluate={"on": ["validation", "tiny/other"]})
    assert [stage.kind for stage in plan.stages() if "plugins" in stage.identity()] == []
    store = ran(plan, tmp_path)
    assert set(store.read(plan.evaluations["tiny/other"]).scores) == {"accuracy", "mcc"}
    assert "tiny" in listed("tasks")


def test_the_schema_knows_what_plugins_add(world: World) -> None:
    assert "Largest" not in recipe_schema()["$defs"]
    planned(world, "search.py", search={"method": "largest"})
    assert "Largest" in recipe_schema()["$defs"]


def test_every_file_was_used() -> None:
    used = set(re.findall(r'"(\w+)\.py"', Path(__file__).read_text()))
    assert {path.stem for path in FILES.glob("*.py")} == used
    assert loaded_plugins() == []
