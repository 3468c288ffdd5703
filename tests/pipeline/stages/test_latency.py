"""The stage that times a geometry: what it leaves, and which recipes share it."""

from pathlib import Path

import pytest

from tests.pipeline.running import execute, plans
from tests.shrink.test_latency import shares_of_flops
from tests.world import World
from tombola.errors import TombolaError
from tombola.pipeline.engines.work import device_of
from tombola.pipeline.stages.fit import FitStage
from tombola.shrink import latency
from tombola.store.store import Store


def test_the_table_is_read_as_it_was_measured(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latency, "time_shares", shares_of_flops())
    search = {"method": "magnitude", "units": "head+neuron"}
    draw = {"speedup": 1.5, "batch_size": [1, 4], "length": 8, "threads": 1}
    (plan,) = plans(world, search=search, draw=draw, retrain=None)
    assert isinstance(plan.mask, FitStage)
    assert plan.mask.latency is not None
    store = Store(tmp_path)
    execute([plan.mask.latency], store)
    table = store.read(plan.mask.latency)
    assert (set(table.sizes), table.threads) == ({1, 4}, 1)
    assert "8" in table.texts
    for size in table.sizes.values():
        whole = size.layer(max(size.heads), max(size.neurons))
        assert size.constant + 2 * whole == pytest.approx(1.0)
        assert size.dense == 0.5


def test_a_table_belongs_to_a_geometry_and_a_machine(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def key(**draw: object) -> str:
        search = {"method": "magnitude", "units": "head+neuron"}
        (plan,) = plans(world, search=search, draw={"speedup": 2.0, "threads": 1, **draw}, seed=3)
        assert isinstance(plan.mask, FitStage)
        assert plan.mask.latency is not None
        return plan.mask.latency.key

    assert key() == key(speedup=3.0)
    assert len({key(), key(threads=2), key(batch_size=1), key(length=8)}) == 4
    before = key()
    monkeypatch.setattr(
        "tombola.foundations.hardware.machine.processor", lambda: type("P", (), {"model": "other"})
    )
    assert key() != before


def test_models_are_timed_on_the_device_that_the_draw_names(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tombola.pipeline.builder.check_device", lambda name: name)
    seen: list[tuple[str, str]] = []

    def time_shares(dense, others, texts, batch_sizes, threads):
        seen.extend((dense.device.type, one.device.type) for one in others)
        return {size: (0.5, [0.5] * len(others)) for size in batch_sizes}

    monkeypatch.setattr(latency, "time_shares", time_shares)
    search = {"method": "magnitude", "units": "head+neuron"}
    draw = {"speedup": 1.5, "length": 8, "threads": 1}
    tables = {}
    for device in ("cpu", "meta"):  # the one other device that every torch has
        (plan,) = plans(world, search=search, draw={**draw, "device": device}, retrain=None)
        assert isinstance(plan.mask, FitStage)
        assert plan.mask.latency is not None
        assert device_of(plan.mask) == device
        tables[device] = plan.mask.latency
        seen.clear()
        execute([plan.mask.latency], Store(tmp_path))
        assert set(seen) == {(device, device)}
    assert tables["meta"].processor == "meta"
    assert tables["cpu"].key != tables["meta"].key


def test_a_device_that_is_not_there_is_refused_when_the_run_is_planned(world: World) -> None:
    search = {"method": "magnitude", "units": "head+neuron"}
    for recipe in ({"draw": {"speedup": 2.0, "device": "warp"}}, {"measure": {"device": "warp"}}):
        with pytest.raises(
            TombolaError, match="device warp: not available in torch on this machine, which has cpu"
        ):
            plans(world, search=search, **recipe)
    with pytest.raises(TombolaError, match="device: only works with speedup or latency"):
        plans(world, search=search, draw={"parameters": 0.5, "device": "cuda"})


def test_a_model_is_measured_on_the_device_that_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tombola.pipeline.builder.check_device", lambda name: name)
    (plan,) = plans(world, measure={"device": "meta"})
    assert plan.measured is not None
    assert device_of(plan.measured) == "meta"
    assert {device_of(stage) for stage in plan.stages() if stage is not plan.measured} == {"cpu"}
    with pytest.raises(TombolaError, match=r"measure\.device: onnxruntime runs models on the cpu"):
        plans(world, measure={"device": "meta"}, runtime="onnx")
