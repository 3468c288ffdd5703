"""Masks from files: checked against the model, combined, and refused where they are of other weights."""

from pathlib import Path

import pytest

from tests.pipeline.running import execute, plans, workspace
from tests.world import World
from tombola.errors import TombolaError
from tombola.masks import Mask, Scores, Units, draw
from tombola.models.loading import load_model
from tombola.pipeline.stages.given import GivenStage, find_mask
from tombola.store.store import Store
from tombola.tasks import Task


@pytest.fixture
def files(world: World, tmp_path: Path) -> list[Path]:
    """Two masks of the world's model: the smallest weights gone, and the largest."""
    model = load_model(world.model, Task.named(str(world.task)), seed=0)
    units = Units.of(model, "weight")
    scores = Scores.magnitude(units, model)
    turned = Scores(units, {name: -value for name, value in scores.items()})
    paths = [tmp_path / "small.safetensors", tmp_path / "large.safetensors"]
    for path, one in zip(paths, (scores, turned), strict=True):
        draw(one, sparsity=0.25).save(path)
    return paths


@pytest.mark.parametrize(("combine", "removed"), [("union", 0.0), ("intersection", 0.5)])
def test_masks_are_combined(
    world: World, files: list[Path], tmp_path: Path, combine: str, removed: float
) -> None:
    search = {"method": "given", "masks": [str(file) for file in files], "combine": combine}
    (plan,) = plans(world, search=search, retrain=None)
    assert isinstance(plan.mask, GivenStage)
    store = Store(tmp_path / "store")
    execute([plan.mask], store)
    drawn = store.read(plan.mask)
    assert drawn.sparsity == pytest.approx(removed, abs=1e-3)
    first, second = (Mask.load(file) for file in files)
    expected = first | second if combine == "union" else first & second
    assert plan.mask.load(workspace(store)) == expected


def test_the_content_of_the_file_is_its_identity(world: World, files: list[Path], tmp_path: Path) -> None:
    def key(path: Path) -> str:
        (plan,) = plans(world, search={"method": "given", "masks": [str(path)]}, retrain=None)
        assert plan.mask is not None
        return plan.mask.key

    moved = tmp_path / "moved.safetensors"
    moved.write_bytes(files[0].read_bytes())
    assert key(files[0]) == key(moved) != key(files[1])


def test_a_mask_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TombolaError, match="use a ticket's folder"):
        find_mask(str(tmp_path))
