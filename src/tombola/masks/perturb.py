"""Swap some of a mask's units at random, as a control for how exact a mask must be. (BERT-Tickets, appendix)"""

from functools import reduce

import torch

from tombola.masks.mask import Mask
from tombola.masks.shares import removals


def perturb(mask: Mask, share: float, seed: int) -> Mask:
    """Swap a share of the kept units with as many removed ones of their kind, at random; the sparsity stays the same.

    Args:
        mask: The mask.
        share: The fraction of kept units to swap.
        seed: The random seed.
    """
    generator = torch.Generator().manual_seed(seed)
    parts = [Mask(mask.units.only(kind), mask.bits) for kind in mask.units.kinds]
    return reduce(Mask.join, [_swap(part, share, generator) for part in parts])


def _swap(mask: Mask, share: float, generator: torch.Generator) -> Mask:
    kept = {name: bools.flatten() for name, bools in mask.items()}
    flat = torch.cat(list(kept.values()))
    ones, zeros = flat.nonzero().flatten(), (~flat).nonzero().flatten()
    swaps = min(removals(share, len(ones)), len(zeros))
    flat[ones[torch.randperm(len(ones), generator=generator)[:swaps]]] = False
    flat[zeros[torch.randperm(len(zeros), generator=generator)[:swaps]]] = True
    pieces = flat.split([len(bits) for bits in kept.values()])
    shapes = {group.name: group.shape for group in mask.units.groups}
    return Mask.from_bools(
        mask.units, {name: piece.reshape(shapes[name]) for name, piece in zip(kept, pieces, strict=True)}
    )
