"""Latency tables: what they interpolate and what they time."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.shrink.test_shrinking import outputs
from tests.shrink.test_uniform import four_layers
from tests.tiny import MODEL_TYPES, tiny
from tombola.defenses import FittedDefense
from tombola.families import family_of
from tombola.masks.fitting import Kept
from tombola.shrink import latency, measuring, runtime
from tombola.shrink.inputs import random_inputs
from tombola.shrink.latency import SizeLatency, measure_latency, of_geometry
from tombola.shrink.measuring import count_flops
from tombola.shrink.texts import RandomTokens, TextBatch


def shares_of_flops(factor: float = 1.0, plus: float = 0.0):
    """Stands in for timing: a model's time is its FLOPs; those of small models count `factor` times, `plus` a share."""

    def time_shares(dense, others, texts, batch_sizes, threads, **_):
        whole = count_flops(dense, 1, 8)
        shares = [count_flops(one, 1, 8) / whole for one in others]
        return {
            size: (0.5, [plus * (len(shares) == 1) + share * factor for share in shares])
            for size in batch_sizes
        }

    return time_shares


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_a_geometry_of_every_family_runs(model_type: str) -> None:
    model = four_layers(model_type)
    heads = family_of(model).kv_heads_in(model.config)
    for layers in ([Kept(heads, 16)] * 2, [Kept(1, 8), None, Kept(0, 24), Kept(heads, 0)]):
        small = of_geometry(model, layers)
        assert small.num_parameters() < model.num_parameters()
        assert torch.isfinite(outputs(small)).all()


def test_a_table_gives_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "time_shares", shares_of_flops())
    model = four_layers("bert")
    found = measure_latency(model, RandomTokens(8), (1, 32), threads=1).sizes
    assert set(found) == {1, 32}
    cost = found[32].cost
    assert cost.of([Kept(4, 24)] * 4) == pytest.approx(1.0)
    whole = count_flops(model, 1, 8)
    for layers in ([Kept(4, 24)] * 3, [Kept(4, 12)] * 4, [Kept(2, 8)] * 3, [Kept(1, 20), Kept(4, 4)]):
        expected = count_flops(of_geometry(model, layers), 1, 8) / whole
        assert cost.of(layers) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("model_type", ["bert", "deberta-v2"])
def test_a_single_layer_is_timed_against_an_empty_one(
    model_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A DeBERTa cannot run without layers."""
    monkeypatch.setattr(latency, "time_shares", shares_of_flops())
    model = tiny(model_type, num_hidden_layers=1)
    found = measure_latency(model, RandomTokens(8), (1,), threads=1).sizes[1]
    empty = count_flops(of_geometry(model, [Kept(0, 0)]), 1, 8) / count_flops(model, 1, 8)
    assert found.constant == pytest.approx(empty)
    assert found.cost.of([Kept(4, 24)]) == pytest.approx(1.0)


def test_times_are_interpolated_and_added() -> None:
    size = SizeLatency(dense=1.0, constant=0.1, heads={0: 0.1, 4: 0.3}, neurons={0: 0.1, 8: 0.15, 24: 0.3})
    assert size.layer(4, 24) == pytest.approx(0.3)
    assert size.layer(2, 24) == pytest.approx(0.2)
    assert size.layer(2, 4) == pytest.approx(0.2 + 0.125 - 0.3)


def test_real_times_make_a_table() -> None:
    found = measure_latency(four_layers("bert"), RandomTokens(16), (2,), threads=1, fewer_heads=False).sizes[
        2
    ]
    assert found.dense > 0
    assert set(found.heads) == {4}
    assert sorted(found.neurons) == [0, 8, 16, 24]
    assert list(found.neurons.values()) == sorted(found.neurons.values())


class Counting(FittedDefense):
    """Changes nothing, and counts what it reads and forgets."""

    def __init__(self) -> None:
        self.read = self.forgotten = 0

    def correct(self, text: str) -> str:
        self.read += 1
        return text

    def forget(self) -> None:
        self.forgotten += 1

    def parts(self) -> list[dict]:
        return []


def test_texts_are_corrected_for_the_small_models_alone_and_nothing_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, defense = four_layers("bert"), Counting()
    texts = RandomTokens(8)
    monkeypatch.setattr(
        RandomTokens,
        "batches",
        lambda self, model, size, count: [TextBatch(random_inputs(model, size, 8), ["a"] * size, defense)],
    )
    small = of_geometry(model, [Kept(4, 8)] * 2)
    latency.time_shares(model, [small], texts, (2,), threads=1, rounds=3, seconds=0.0)
    assert defense.forgotten == 3  # two to warm up, and one round, of the small model alone
    assert defense.read == 2 * defense.forgotten


def test_an_exported_model_alone_is_charged_with_the_correction_of_its_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither the dense model in PyTorch nor its ONNX file has the ticket's defense."""
    model, defense, passes = four_layers("bert"), Counting(), set[tuple[str, int]]()
    batch = TextBatch(random_inputs(model, 1, 8), ["a"], defense)

    def run_as(name: str) -> Callable[[object], None]:
        def run(batch: object) -> None:
            passes.add((name, defense.read))
            defense.read = 0

        return run

    monkeypatch.setattr(RandomTokens, "batches", lambda *_: [batch])
    monkeypatch.setattr(measuring, "forward_pass", lambda model: run_as("dense"))
    monkeypatch.setattr(runtime, "try_session", lambda *_, **__: None)
    monkeypatch.setattr(runtime, "open_session", lambda file: file.name)
    monkeypatch.setattr(runtime, "session_pass", run_as)
    measuring.measure_exported(model, model, Path("dense.onnx"), Path("small.onnx"), (1,), RandomTokens(8))
    assert passes == {("dense", 0), ("dense.onnx", 0), ("small.onnx", 1)}
