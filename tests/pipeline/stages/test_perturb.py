"""Perturbed masks: as sparse as before, and different in exactly the share that was asked for."""

from pathlib import Path

import pytest

from tests.pipeline.running import execute, plans, workspace
from tests.tiny import tiny
from tests.world import World
from tombola.errors import RecipeError
from tombola.masks import Units
from tombola.masks.drawing import draw_counts, random_scores
from tombola.masks.perturb import perturb
from tombola.pipeline.stages.perturb import Perturb
from tombola.store.store import Store


def test_a_share_of_the_kept_units_is_swapped(world: World, tmp_path: Path) -> None:
    draw = {"sparsity": 0.5, "perturb": 0.1}
    (plan,) = plans(world, search={"method": "magnitude"}, draw=draw, retrain=None)
    assert isinstance(plan.mask, Perturb)
    assert plan.mask.label == "perturb 10%"
    store = Store(tmp_path)
    execute([plan.mask], store)
    space = workspace(store)
    before, after = plan.mask.mask.load(space), plan.mask.load(space)
    kept = before.count - before.removed
    assert after.removed == before.removed
    assert before.count - (before & after).removed == kept - int(0.1 * kept + 0.5)
    drawn, origin = store.read(plan.mask), store.read(plan.mask.mask)
    assert (drawn.removed, drawn.parameters) == (origin.removed, origin.parameters)
    assert drawn.sparsity == pytest.approx(0.5, abs=1e-3)


def test_a_share_beyond_all_units_is_refused(world: World) -> None:
    with pytest.raises(RecipeError, match=r"draw\.perturb"):
        plans(world, search={"method": "magnitude"}, draw={"perturb": 1.5})


def test_units_are_swapped_with_others_of_their_kind() -> None:
    units = Units.of(tiny("bert", num_hidden_layers=6), "head+ffn")
    mask = draw_counts(random_scores(units, 0), {"head": 12, "ffn": 3})
    other = perturb(mask, 0.5, seed=0)
    assert other.by_kind() == mask.by_kind()
    assert (mask & other).kept == 12 - 6 + 3 - 2
    assert perturb(mask, 0.5, seed=0) == other != perturb(mask, 0.5, seed=1)
