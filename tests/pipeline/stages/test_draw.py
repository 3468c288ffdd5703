"""Draws: exact counts, what is said of masks that let nothing through, and how a pooler is left out."""

import torch

from tests.pipeline.running import execute, plans, workspace
from tests.tiny import tiny
from tombola.masks import Mask, Units
from tombola.pipeline.stages.base import Drawn, emptied
from tombola.search.iterative import Iterative
from tombola.search.magnitude import Magnitude
from tombola.store.store import Store


def test_a_draw_removes_the_exact_share_and_describes_the_mask(world, tmp_path):
    (plan,) = plans(world, search={"method": "magnitude"}, draw={"sparsity": 0.3}, retrain=None)
    store = Store(tmp_path)
    execute([plan.mask], store)
    drawn, mask = store.read(plan.mask), plan.mask.load(workspace(store))
    assert isinstance(drawn, Drawn)
    assert drawn.removed == mask.removed == int(0.3 * mask.count + 0.5)
    assert drawn == Drawn.of(mask, drawn.parameters)
    assert drawn.total_sparsity == mask.removed_weights / tiny_parameters(world)


def tiny_parameters(world):
    (plan,) = plans(world)
    return plan.model.model.load(plan.model.data.definition, seed=1).num_parameters()


def test_a_matrix_without_a_weight_is_named():
    units = Units.of(tiny("bert"), "weight")
    kept = {group.name: torch.ones(group.shape, dtype=torch.bool) for group in units.groups}
    assert emptied(Mask.from_bools(units, kept)) == []
    kept[units.groups[-1].name].zero_()
    kept[units.groups[0].name].zero_()[0, 0] = True
    assert emptied(Mask.from_bools(units, kept)) == [units.groups[-1].name]


def test_a_structured_mask_may_remove_a_whole_layer():
    units = Units.of(tiny("bert"), "head")
    kept = {group.name: torch.zeros(group.shape, dtype=torch.bool) for group in units.groups}
    assert emptied(Mask.from_bools(units, kept)) == []


def test_the_pooler_is_among_the_units_unless_it_is_left_out():
    model = tiny("bert")
    kinds = {group.kind for group in Magnitude().units_of(model).groups}
    assert kinds - {group.kind for group in Magnitude(pooler=False).units_of(model).groups} == {"pooler"}
    assert "pooler" not in Iterative().canonical()
