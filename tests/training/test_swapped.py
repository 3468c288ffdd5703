"""Training with word swaps: killed runs, accumulated batches, 16 bits, and the other parts of a training."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.tiny import VOCABULARY, tiny
from tests.training.test_resume import Killed, killed_at
from tests.training.toy import TOKENIZER, same_weights, toy_data, toy_train
from tombola.errors import TombolaError
from tombola.objectives.poe import PoELoss
from tombola.objectives.swaps import SWAPS, SwapAdversary
from tombola.tasks import Collate

STILL: dict[str, Any] = {"dropout": 0.0, "epsilon": 1e-2}  # a small epsilon would magnify rounding errors
ADVERSARY = SwapAdversary(share=0.5, weight=0.4, steps=2)


def neighbours(ids: torch.Tensor) -> torch.Tensor:
    """The next two tokens, for every second one of those that are words."""
    options = torch.stack([ids + 1, ids + 2], dim=-1)
    return options.masked_fill((ids.lt(5) | ids.remainder(2).eq(1) | ids.ge(VOCABULARY - 2))[..., None], -1)


def run(folder: Path, **options: Any) -> torch.nn.Module:
    model = tiny("bert", num_labels=2)
    collate = Collate(TOKENIZER).with_column(SWAPS, neighbours)
    toy_train(model, folder, **{"adversary": ADVERSARY, "collate": collate, **options})
    return model


def test_a_killed_run_ends_bit_identical(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    torch.rand(3)
    with pytest.raises(Killed):
        run(tmp_path / "killed", checkpoint_minutes=0, progress=killed_at(4))
    assert same_weights(whole, run(tmp_path / "killed"))
    assert not same_weights(whole, run(tmp_path / "plain", adversary=None))


def test_accumulated_batches_give_the_same_gradients(tmp_path: Path) -> None:
    still = {**STILL, "group_by_length": False}
    large = run(tmp_path / "large", batch_size=8, **still)
    small = run(tmp_path / "small", batch_size=4, accumulate=2, **still)
    for one, other in zip(large.parameters(), small.parameters(), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("precision", [pytest.param("bf16", marks=pytest.mark.bf16), "fp16"])
def test_it_learns_in_16_bits(tmp_path: Path, precision: str) -> None:
    model = run(tmp_path, precision=precision, steps=3)
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_a_bias_model_counts_for_both_texts(tmp_path: Path) -> None:
    data = toy_data()
    bias = np.log(np.full((len(data), 2), 0.5, dtype=np.float32))
    plain = run(tmp_path / "plain", **STILL)
    uniform = run(tmp_path / "poe", data=data.with_extra("bias", bias), loss=PoELoss(), **STILL)
    for one, other in zip(plain.parameters(), uniform.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_batches_without_neighbours_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TombolaError, match="adversary: swaps needs the column 'swaps'"):
        run(tmp_path, collate=Collate(TOKENIZER))
