"""Masks that meet a target: counted exactly, or corrected by what was measured."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.pipeline.running import execute, plans, workspace
from tests.shrink.test_latency import shares_of_flops
from tests.tiny import tiny
from tests.world import World
from tombola.masks import Scores, Units
from tombola.masks.fitting import Cost
from tombola.models.loading import load_model
from tombola.pipeline.stages.fit import FitStage, _Choice, _distance
from tombola.pipeline.stages.latency import Latency
from tombola.search.layers import Layers
from tombola.shrink import latency, measuring, shrink
from tombola.shrink.texts import TextBatch
from tombola.store.store import Store


def test_a_target_of_parameters_is_what_the_small_model_has(world: World, tmp_path: Path) -> None:
    draw = {"parameters": 0.9, "multiple": 1}
    (plan,) = plans(world, search={"method": "magnitude", "units": "head+neuron"}, draw=draw, retrain=None)
    assert isinstance(plan.mask, FitStage)
    assert plan.mask.label == "draw free layers for 90% of the parameters"
    store = Store(tmp_path)
    execute([plan.mask], store)
    fitted = plan.mask.fitted(store.open(plan.mask))
    assert (fitted.quantity, fitted.target, fitted.note) == ("parameters", 0.9, None)
    model = load_model(world.model, plan.mask.data.definition, seed=0)
    small = shrink(model, plan.mask.load(workspace(store)))
    assert small.num_parameters() / model.num_parameters() == pytest.approx(fitted.reached)
    assert 0.85 < fitted.reached <= 0.9
    assert store.read(plan.mask).parameters == model.num_parameters()


@pytest.mark.parametrize(("layout", "units"), [("uniform", "head+neuron"), ("free", "neuron")])
@pytest.mark.parametrize("quantity", [{"speedup": 1.25}, {"latency": 400}])
def test_the_choice_is_corrected_by_the_measured_time(
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    layout: str,
    units: str,
    quantity: dict[str, float],
) -> None:
    search = {"method": "magnitude", "units": units}
    draw = {**quantity, "layout": layout, "multiple": 1, "batch_size": [1, 4], "length": 8, "threads": 1}
    (plan,) = plans(world, search=search, draw=draw, retrain={"shrink": True, "epochs": 0})
    assert isinstance(plan.mask, FitStage)
    assert isinstance(plan.mask.latency, Latency)
    store = Store(tmp_path / "store")
    monkeypatch.setattr(latency, "time_shares", shares_of_flops())
    execute([plan.mask.latency], store)
    monkeypatch.setattr(latency, "time_shares", shares_of_flops(1.1))
    execute([plan.mask], store)
    fitted = plan.mask.fitted(store.open(plan.mask))
    (wanted,) = quantity.values()
    assert fitted.reached == pytest.approx(wanted, rel=0.05)


def test_the_time_of_the_defense_is_part_of_the_target(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = {"speedup": 1.25, "layout": "uniform", "multiple": 1, "batch_size": 4, "threads": 1}
    neurons = {}
    for defend in ([], [{"kind": "spelling", "dictionary": None}]):
        (plan,) = plans(
            world,
            search={"method": "magnitude", "units": "neuron"},
            draw=draw,
            defend=defend,
            retrain={"shrink": True, "epochs": 0},
        )
        assert isinstance(plan.mask, FitStage)
        assert (plan.mask.defend is None) == (not defend)
        counted = 0.1 if defend else 0.0
        monkeypatch.setattr(measuring, "correction_seconds", lambda batches: 0.5 * corrected(batches))
        monkeypatch.setattr(latency, "time_shares", shares_of_flops(plus=counted))
        store = Store(tmp_path / f"store-{len(defend)}")
        execute([plan.mask], store)
        fitted = plan.mask.fitted(store.open(plan.mask))
        assert fitted.reached == pytest.approx(1.25, rel=0.05)
        neurons[bool(defend)] = fitted.layers[0][1]
    assert neurons[True] < neurons[False]


def corrected(batches: list[dict]) -> float:
    """A tenth, where the texts of the batches go through a defense."""
    return 0.1 if all(isinstance(batch, TextBatch) for batch in batches) else 0.0


def test_too_fast_is_better_than_too_slow() -> None:
    assert sorted([0.03, -0.2, 0.06, -0.01], key=_distance) == [-0.01, 0.03, -0.2, 0.06]


@pytest.mark.parametrize("layers", ["most", 1])
def test_the_number_of_layers_is_that_of_the_draw(world: World, tmp_path: Path, layers: str | int) -> None:
    draw = {"layout": "uniform", "layers": layers, "sparsity": 0.35, "multiple": 1}
    search = {"method": "importance", "units": "head+neuron", "criterion": "mask_fisher", "batches": 2}
    (plan,) = plans(world, search=search, draw=draw, retrain={"shrink": True, "epochs": 0})
    assert isinstance(plan.mask, FitStage)
    store = Store(tmp_path)
    execute([plan.mask], store)
    left = [kept for kept in plan.mask.fitted(store.open(plan.mask)).layers if kept]
    assert left == ([(4, 4)] * 2 if layers == "most" else [(4, 24)])  # 1,024 weights of heads, 32 of a neuron


@pytest.mark.parametrize("layout", ["uniform", "free"])
@pytest.mark.parametrize("keep", ["first", "even", "importance"])
def test_a_first_layer_that_differs_stays_however_little_it_matters(keep: str, layout: str) -> None:
    model = tiny("modernbert", num_hidden_layers=4)
    units = Units.of(model, "layer")
    values = [0.4, 0.2, 0.3] if keep == "importance" else [-1.0, -2.0, -3.0]
    groups = zip(units.groups, values, strict=True)
    scores = Scores(units, {group.name: torch.tensor([value]) for group, value in groups})
    stage = SimpleNamespace(
        search=Layers(keep=keep), layout=layout, layers="importance", multiple=8, progress=1.0, within=None
    )
    choice = _Choice(stage, model, scores)
    mask = choice.mask(
        choice.make(SimpleNamespace(within_target=lambda: [Cost(0.0, lambda heads, neurons: 0.5)]))
    )
    left = {"first": [0, 1], "even": [0, 3], "importance": [0, 1]}[keep]
    assert [0, *(index for index, kept in enumerate(mask.values(), start=1) if bool(kept))] == left
