"""The stage that times a geometry: what it leaves, and which recipes share it."""

from pathlib import Path

import pytest

from tests.pipeline.running import execute, plans
from tests.shrink.test_latency import shares_of_flops
from tests.world import World
from tombola.pipeline.stages.fit import Fit
from tombola.shrink import latency
from tombola.store.store import Store


def test_the_table_is_read_as_it_was_measured(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latency, "time_shares", shares_of_flops())
    search = {"method": "magnitude", "units": "head+neuron"}
    draw = {"speedup": 1.5, "batch_size": [1, 4], "length": 8, "threads": 1}
    (plan,) = plans(world, search=search, draw=draw, retrain=None)
    assert isinstance(plan.mask, Fit)
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
        assert isinstance(plan.mask, Fit)
        assert plan.mask.latency is not None
        return plan.mask.latency.key

    assert key() == key(speedup=3.0)
    assert len({key(), key(threads=2), key(batch_size=1), key(length=8)}) == 4
    before = key()
    monkeypatch.setattr(
        "tombola.foundations.hardware.machine.processor", lambda: type("P", (), {"model": "other"})
    )
    assert key() != before
