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
    "dense": "5a9f29edd4fbb001c59b8642",
    "search": "a006d756b45d9ae06840e8ab",
    "mask": "c94ad6894cfdaa6801bfda29",
    "ticket": "e84ea67f63b77ad2efab9d0a",
    "evaluate": "85f71f90b700a039d713f797",
    "attack": "7d563c84e597bd677b2897df",
    "measure": "95c26708562927f0e306e2d8",
    "without tickets": "1e78e6953646421d23b39eb2",
    "with tickets": "cf0f13f2eec1810feae25834",
    "evaluate shared": "81bba57c7ec0373e15d720b3",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_stage_keeps_its_key(name: str) -> None:
    assert stages()[name].key == GOLDEN[name], f"{name}: {stages()[name].identity()}"
