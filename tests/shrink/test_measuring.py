from pathlib import Path

import pytest
import torch

from tests.shrink.masks import half
from tests.tiny import tiny
from tombola.cli.tables import scaled
from tombola.masks import Mask, Units
from tombola.shrink import Sizes, compare, count_flops, measure, shrink
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
        (sizes,) = measure(model, batch_sizes=(), length=8)
        model.save_pretrained(tmp_path)
        content = (tmp_path / "model.safetensors").read_bytes()
        assert sizes.bytes == len(content) - 8 - int.from_bytes(content[:8], "little")


def test_models_are_measured_side_by_side() -> None:
    model = tiny("bert")
    before, after = measure(
        model, shrink(model, half(model, "layer")), batch_sizes=(1, 2), length=8, rounds=2
    )
    assert set(before.latency) == set(after.latency) == {1, 2}
    assert all(seconds > 0 for seconds in [*before.latency.values(), *after.latency.values()])
    assert (before.parameters, before.flops) > (after.parameters, after.flops)


def test_comparison() -> None:
    before = Sizes(parameters=100, flops=400, bytes=300, length=8, latency={1: 0.5, 32: 3.0})
    after = Sizes(parameters=50, flops=100, bytes=200, length=8, latency={1: 0.25, 32: 1.0})
    assert [row.ratio for row in compare(before, after)] == [2.0, 4.0, 1.5, 2.0, 3.0]
    assert compare(before, after)[-1].what == "time of a batch of 32"


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
