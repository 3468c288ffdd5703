"""Models that a `device_map` spread out: masks follow each layer to its device, and refuse what is offloaded."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from tests.tiny import tiny, token_ids
from tombola.errors import TombolaError
from tombola.masks import Mask, Scores, Units, draw

PLACES = ["model.embed_tokens", "model.norm", "model.rotary_emb", "lm_head", "model.layers.0"]


def spread_out(folder: Path, last: str) -> tuple[PreTrainedModel, PreTrainedModel]:
    """A decoder on the processor, and the same with its last layer elsewhere."""
    model = tiny("llama", "causal-lm")
    model.save_pretrained(folder)
    places = {**dict.fromkeys(PLACES, "cpu"), "model.layers.1": last}
    other = AutoModelForCausalLM.from_pretrained(
        folder, device_map=places, offload_folder=folder / "offloaded"
    )
    return model, other


def half(model: PreTrainedModel) -> Mask:
    units = Units.of(model, "weight")
    return draw(Scores(units, {group.name: torch.rand(group.shape) for group in units.groups}), 0.5)


def test_a_mask_follows_the_map(tmp_path: Path) -> None:
    model, other = spread_out(tmp_path, "cpu")
    mask = half(model)
    mask.apply(model)
    mask.apply(other)
    ids = token_ids(2, 6)
    with torch.no_grad():
        assert torch.equal(model(ids).logits, other(ids).logits)


def test_offloaded_weights_are_refused(tmp_path: Path) -> None:
    model, other = spread_out(tmp_path, "disk")
    expected = r"layers\.1\..* is offloaded by the model's device_map, .*: load the model without offloading, or prune"
    with pytest.raises(TombolaError, match=expected):
        half(model).apply(other)
    with pytest.raises(TombolaError, match=expected):
        Units.of(other, "weight").matrices(other)
