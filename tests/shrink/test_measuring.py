from pathlib import Path

import pytest
import torch

from tests.shrink.masks import half
from tests.tiny import tiny
from tombola.cli.tables import scaled
from tombola.masks import Mask, Units
from tombola.shrink import RandomTokens, Sizes, Speedup, compare, count_flops, measure, shrink
from tombola.shrink.inputs import random_inputs

TOKENS, HIDDEN = 10, 16


def bert_flops(heads: list[int], neurons: list[int]) -> int:
    """Two operations a multiply-add: four projections and two attention products a head, two FFN matrices."""
    layers = sum(
        2 * TOKENS * 4 * HIDDEN * (4 * head)
        + 4 * TOKENS * TOKENS * 4 * head
        + 2 * TOKENS * 2 * HIDDEN * neuron
        for head, neuron in zip(heads, neurons, strict=True)
    )
    return layers + 2 * HIDDEN * HIDDEN + 2 * HIDDEN * 2


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_flops_of_bert_by_hand(implementation: str) -> None:
    model = tiny("bert", attn_implementation=implementation)
    assert count_flops(model, 1, TOKENS) == bert_flops([4, 4], [24, 24])
    assert count_flops(model, 3, TOKENS) == 3 * bert_flops([4, 4], [24, 24])
    units = Units.of(model, "head")
    kept = {
        "layers.0.heads": torch.tensor([1, 0, 0, 0]).bool(),
        "layers.1.heads": torch.tensor([1, 1, 0, 1]).bool(),
    }
    assert count_flops(shrink(model, Mask.from_bools(units, kept)), 1, TOKENS) == bert_flops([1, 3], [24, 24])


def test_bytes_are_those_of_the_file_without_its_header(tmp_path: Path) -> None:
    for head in ("sequence-classification", "masked-lm"):
        model = tiny("bert", head)
        (sizes,), _ = measure(model, batch_sizes=())
        model.save_pretrained(tmp_path)
        content = (tmp_path / "model.safetensors").read_bytes()
        assert sizes.bytes == len(content) - 8 - int.from_bytes(content[:8], "little")


def test_models_are_measured_side_by_side() -> None:
    model = tiny("bert").train()
    (before, after), (speedup,) = measure(
        model, shrink(model, half(model, "layer")), batch_sizes=(1, 2), texts=RandomTokens(8), rounds=3
    )
    assert set(before.latency) == set(after.latency) == set(speedup) == {1, 2}
    assert all(found.low <= found.ratio <= found.high for found in speedup.values())
    assert (before.parameters, before.flops) > (after.parameters, after.flops)
    assert before.flops == count_flops(model, 1, 8)
    assert (before.length, before.texts) == (8, "random tokens, 8 per text")
    assert (
        (before.threads, before.device) == (after.threads, after.device) == (torch.get_num_threads(), "cpu")
    )
    assert model.training


def test_a_dense_model_alone_has_no_speedup() -> None:
    sizes, speedups = measure(tiny("bert"), batch_sizes=(1,), rounds=1)
    assert (len(sizes), speedups) == (1, [])
    assert sizes[0].length == 64


def test_a_decoder_without_a_padding_token_is_measured_in_batches() -> None:
    model = tiny("gpt2", pad_token_id=None)
    (sizes,), _ = measure(model, batch_sizes=(2,), rounds=1)
    assert set(sizes.latency) == {2}
    assert model.config.pad_token_id is None


def test_comparison() -> None:
    common = {"length": 8, "texts": "random tokens, 8 per text", "threads": 2, "device": "cpu"}
    before = Sizes(parameters=100, flops=400, bytes=300, latency={1: 0.5, 32: 3.0}, **common)
    after = Sizes(parameters=50, flops=100, bytes=200, latency={1: 0.25, 32: 1.0}, **common)
    speedup = {1: Speedup(ratio=1.9, low=1.8, high=2.1), 32: Speedup(ratio=2.5, low=2, high=4, busy="busy")}
    rows = compare(before, after, speedup)
    assert [row.ratio for row in rows] == [2.0, 4.0, 1.5, 1.9, 2.5]
    assert [(row.low, row.high) for row in rows] == [(None, None)] * 3 + [(1.8, 2.1), (2, 4)]
    assert (rows[-1].what, rows[-1].before, rows[-1].after) == ("time of a batch of 32", 3.0, 1.0)
    assert rows[-1].speedup == speedup[32]


def test_random_inputs() -> None:
    inputs = random_inputs(tiny("bert", pad_token_id=3), 4, 8, padded=True)
    attended = inputs["attention_mask"].bool()
    assert attended.sum(dim=1).tolist() == [8, 4, 8, 4]
    assert torch.equal(inputs["input_ids"] == 3, ~attended)
    assert inputs["token_type_ids"].unique().tolist() == [0, 1]
    assert "token_type_ids" not in random_inputs(tiny("distilbert"), 1, 4)


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [
        (22_713_986, "", "22.7 M"),
        (2.869e9, "", "2.87 G"),
        (90.87e6, "B", "90.9 MB"),
        (0.0634, "s", "63.4 ms"),
    ],
)
def test_sizes_are_written_with_three_digits(value: float, unit: str, written: str) -> None:
    assert scaled(value, unit) == written
