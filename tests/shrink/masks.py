"""Masks to shrink tiny models by."""

import torch
from transformers import PreTrainedModel

from tombola.masks import Mask, Units


def half(model: PreTrainedModel, granularity: str, *, seed: int = 0, empty: int | None = None) -> Mask:
    """A mask that removes every unit with probability one half, and all of layer `empty`; "head+ffn" joins two."""
    first, *others = [_half(model, part, seed, empty) for part in granularity.split("+")]
    for other in others:
        first = first.join(other)
    return first


def _half(model: PreTrainedModel, granularity: str, seed: int, empty: int | None) -> Mask:
    units = Units.of(model, granularity)  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(seed)
    drawn = {group.name: torch.rand(group.shape, generator=generator) < 0.5 for group in units.groups}
    return Mask.from_bools(
        units, {group.name: drawn[group.name] & (group.layer != empty) for group in units.groups}
    )
