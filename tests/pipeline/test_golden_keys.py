"""The keys of a few stages, pinned: a change that renames stored stages has to show here.

If a key changes on purpose, because a stage's result changes, raise the stage's `version` and pin the new key.
"""

from typing import Any

import pytest

from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.attack import AttackStage
from tombola.pipeline.stages.draw import Draw
from tombola.pipeline.stages.evaluate import Evaluate
from tombola.pipeline.stages.measure import Measure
from tombola.pipeline.stages.search import SearchStage
from tombola.pipeline.stages.share import EvaluateShared, Share
from tombola.pipeline.stages.train import Train
from tombola.recipe.grid import expand
from tombola.store.stage import Stage
from tombola.training.multitask.sampling import PROPORTIONAL

MODEL = ModelSource("model", "folder", "model-fingerprint")
DATA = DataSource("sst2", "train", fingerprint="train-fingerprint")
HELD_OUT = DataSource("sst2", "validation", fingerprint="validation-fingerprint")
RECIPE = {
    "model": "minilm",
    "task": "sst2",
    "train": {"epochs": 2, "learning_rate": 5e-5, "adversary": {"kind": "freelb", "steps": 3}},
    "search": {"method": "learned", "gate": {"kind": "hard_concrete"}, "train": {"epochs": 4}},
    "attack": {"recipes": ["deepwordbug"]},
    "measure": {"batch_sizes": [1, 32]},
}


def stages() -> dict[str, Stage[Any]]:
    """Stages of every sort: settings at their defaults and not, inputs, references."""
    (cell,) = expand(RECIPE)
    recipe = cell.recipe
    common = {"model": MODEL, "data": DATA, "seed": 1}
    dense = Train(**common, train=recipe.train, precision="fp32")
    search = SearchStage(**common, search=recipe.search, precision="fp32", start=dense)
    mask = Draw(**common, search=recipe.search, sparsity=0.3, scope="global", scores=search)
    ticket = Train(**common, train=recipe.retrain.training_part(), precision="fp32", mask=mask)
    judged = {"model": ticket, "trained": DATA, "data": HELD_OUT, "max_length": 128, "precision": "fp32"}
    (attack,) = recipe.attack.chosen().values()
    both = {"model": MODEL, "data": (DATA, HELD_OUT), "seed": 1, "sampling": PROPORTIONAL}
    without = Share(**both, train=recipe.train, precision="fp32")
    shared = Share(**both, train=recipe.train, precision="fp32", masks=(mask, None), units="head")
    return {
        "dense": dense,
        "search": search,
        "mask": mask,
        "ticket": ticket,
        "evaluate": Evaluate(**judged),
        "attack": AttackStage(**judged, attack=attack, n=200, seed=0),
        "measure": Measure(model=ticket, mask=mask, measure=recipe.measure, data=HELD_OUT),
        "without tickets": without,
        "with tickets": shared,
        "evaluate shared": EvaluateShared(**{**judged, "model": shared}, task="sst2"),
    }


GOLDEN = {
    "dense": "7f009ac284a511f2bf49d295",
    "search": "820e36c7575a95b64d3bf700",
    "mask": "2a2b552afee22b4448b63c9a",
    "ticket": "b123bd1eec89618439124925",
    "evaluate": "c19d39f5fc9d333f258037cd",
    "attack": "0cf7249ddbb5c16e6a806697",
    "measure": "5724dee37edfa7dd28a2c7eb",
    "without tickets": "4e91bd9de8c8e3f0662b8717",
    "with tickets": "26317ade6745ffdcda48d76b",
    "evaluate shared": "080d059a8c11581d990100e6",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_stage_keeps_its_key(name: str) -> None:
    assert stages()[name].key == GOLDEN[name], f"{name}: {stages()[name].identity()}"
