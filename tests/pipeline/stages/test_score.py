"""Scores of units: made once for all sparsities, of the model that is named, and the plain numbers they should be."""

from pathlib import Path

import torch

from tests.pipeline.running import execute, plans
from tests.world import World
from tombola.masks import Scores, fingerprint
from tombola.models.loading import load_model
from tombola.pipeline.stages.score import UnitScores
from tombola.store.store import Store

BRIEF = {"steps": 2, "learning_rate": 1e-3, "batch_size": 16, "max_length": 16}


def scoring(world: World, **changes: object) -> list[UnitScores]:
    found = {
        stage.key: stage
        for plan in plans(world, **{"train": BRIEF, "retrain": None, **changes})
        for stage in plan.stages()
        if isinstance(stage, UnitScores)
    }
    return list(found.values())


def test_magnitudes_are_those_of_the_weights(world: World, tmp_path: Path) -> None:
    search = {"method": "magnitude", "units": "neuron"}
    (stage,) = scoring(world, search=search, draw={"speedup": 1.5, "threads": 1})
    store = Store(tmp_path)
    execute([stage], store)
    scores = store.read(stage)
    assert isinstance(scores, Scores)
    model = load_model(world.model, stage.data.definition, seed=1)
    assert scores.units.base == fingerprint(model)
    expected = Scores.magnitude(scores.units, model)
    for name, values in scores.items():
        assert torch.equal(values, expected[name])


def test_all_sparsities_draw_from_one_scoring_of_the_fine_tuned_model(world: World, tmp_path: Path) -> None:
    search = {"method": "importance", "batches": 2}
    (stage,) = scoring(world, search=search, draw={"sparsity": [0.1, 0.3, 0.5]})
    assert stage.of is not None
    assert stage.of.kind == "train"
    store = Store(tmp_path)
    execute([stage], store)
    scores = store.read(stage)
    assert scores.units.granularity == "head+ffn"
    assert all((values >= 0).all() and values.isfinite().all() for _, values in scores.items())
