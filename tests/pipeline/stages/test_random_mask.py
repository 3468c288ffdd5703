"""Random masks of another mask's size: the same counts, other units, decided by the seed and the number."""

from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.running import execute, plans, workspace
from tests.world import World
from tombola.masks import Mask
from tombola.pipeline.stages.base import MaskStage
from tombola.pipeline.stages.random_mask import RandomMask
from tombola.store.store import Store


def drawn(store: Store, *stages: MaskStage) -> list[Mask]:
    execute(stages, store)
    return [stage.load(workspace(store)) for stage in stages]


def ticket(world: World, search: dict[str, Any], **draw: Any) -> MaskStage:
    (plan,) = plans(world, train={"steps": 1}, search=search, draw=draw, retrain=None)
    assert plan.mask is not None
    return plan.mask


@pytest.mark.parametrize(
    ("search", "draw"),
    [
        ({"method": "magnitude"}, {"sparsity": 0.3}),
        ({"method": "magnitude", "units": "head"}, {"heads": 3}),
        ({"method": "magnitude", "units": "head+neuron"}, {"sparsity": 0.4}),
        ({"method": "wanda"}, {"sparsity": 0.3}),
    ],
)
def test_any_mask_has_random_masks_of_its_size(
    world: World, tmp_path: Path, search: dict[str, Any], draw: dict[str, Any]
) -> None:
    own = ticket(world, search, **draw)
    store = Store(tmp_path)
    stages = [RandomMask(mask=own, seed=seed, number=number) for seed, number in ((1, 0), (1, 1), (2, 0))]
    mask, *others = drawn(store, own, *stages)
    for kind in mask.units.granularity.split("+"):
        units = mask.units.only(kind)
        assert {Mask(units, one.bits).removed for one in others} == {Mask(units, mask.bits).removed}
    assert all(one != mask for one in others)
    assert others[0] != others[1] != others[2] != others[0]
    figures, origin = store.read(stages[0]), store.read(own)
    assert (figures.removed, figures.parameters, figures.base) == (
        origin.removed, origin.parameters, origin.base,
    )  # fmt: skip


@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.parametrize("min_heads", [0, 1, 2])
def test_it_is_the_random_ticket_of_the_importance_search(
    world: World, tmp_path: Path, min_heads: int, number: int
) -> None:
    search = {"method": "importance", "min_heads": min_heads, "start": "pretrained"}
    own = ticket(world, search, sparsity=0.5)
    expected = ticket(world, {**search, "order": "random", "mask_number": number}, sparsity=0.5)
    random = RandomMask(mask=own, seed=1, number=number, min_heads=min_heads)
    first, second = drawn(Store(tmp_path), random, expected)
    assert first == second
