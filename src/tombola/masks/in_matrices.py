"""Drawing within matrices: the same rate in every output row, N of every M weights, or whole blocks."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tombola.errors import TombolaError
from tombola.masks.bits import Bits, pack, unpack
from tombola.masks.groups import Group
from tombola.masks.layout import Matrix
from tombola.masks.mask import Mask
from tombola.masks.names import Scope
from tombola.masks.patterns import NofM, Pattern, keep_in_groups, keep_in_rows
from tombola.masks.scores import Scores
from tombola.masks.select import (
    RankedGroup,
    keep_highest,
    keep_highest_checked,
    ordered_keys,
)
from tombola.masks.shares import removals

GONE, PROTECTED = -1, 1 << 33
"""Sort keys below and above the keys of all scores."""


@dataclass(frozen=True)
class MatrixSelection:
    """How to prune one matrix on its own: a fraction of it, the same fraction of every row, or by a pattern.

    Args:
        sparsity: The fraction of weights, or of blocks, to remove.
        scope: "local" ranks the whole matrix, "row" each output row separately.
        pattern: An N:M or block pattern.
    """

    sparsity: float
    scope: Scope = "local"
    pattern: Pattern | None = None

    def __post_init__(self) -> None:
        if self.scope == "global":
            raise TombolaError(
                'scope "global" ranks all matrices together, but here they are drawn one by one: use local or row.'
            )

    def keep(self, scores: Tensor, start: int = 0) -> Tensor:
        """Return which weights of an outputs × inputs matrix stay.

        Args:
            scores: A score for each weight of the matrix, or of a strip of its columns.
            start: The first column of the strip. Strips drawn in order lose exactly as many weights together as the
                whole matrix would.
        """
        values = _checked(scores, "a matrix")
        return torch.from_numpy(self._keep(values, start)).to(scores.device)

    def _keep(self, values: NDArray[np.float32], start: int) -> NDArray[np.bool_]:
        if isinstance(self.pattern, NofM):
            return keep_in_groups(values, self.pattern)
        if self.pattern is not None:
            blocks = self.pattern.totals(torch.from_numpy(values))
            plain = MatrixSelection(self.sparsity, self.scope)
            return self.pattern.spread(plain.keep(blocks, start // self.pattern.inputs)).numpy()
        rows, columns = values.shape
        if self.scope == "row":
            return keep_in_rows(values, self._quota(start, columns))
        bits = keep_highest(
            [RankedGroup("", torch.from_numpy(values))], self._quota(rows * start, rows * columns)
        )
        return unpack(bits[""], values.shape).numpy()

    def _quota(self, before: int, count: int) -> int:
        return removals(self.sparsity, before + count) - removals(self.sparsity, before)


def draw_in_matrices(
    scores: Scores,
    sparsity: float,
    scope: Scope,
    pattern: Pattern | None,
    within: Mask | None,
    protect: Mask | None,
) -> Mask:
    """Return the mask that removes the lowest scores by row, N:M group or block; see `draw`."""
    units = scores.units
    if units.granularity != "weight":
        what = f"pattern {pattern}" if pattern else 'scope "row"'
        raise TombolaError(f"{what} only works for single weights, but these units are {units.granularity}.")
    matrices = {matrix.name: matrix for matrix in units.layout.matrices}
    if pattern is None:
        kept = {
            group.name: _draw_rows(
                group,
                matrices.get(group.name),
                scores,
                _bits(within, group),
                _bits(protect, group),
                sparsity,
            )
            for group in units.groups
        }
        return Mask(units, kept)
    for group in units.groups:
        if group.name not in matrices:
            raise TombolaError(f"pattern {pattern} only applies to matrices, but {group.name} is not one.")
        matrix = matrices[group.name]
        pattern.check(matrix.name, matrix.outputs, matrix.inputs)
    if isinstance(pattern, NofM):
        return Mask(
            units,
            {
                group.name: _draw_groups(
                    matrices[group.name], scores, _bits(within, group), _bits(protect, group), pattern
                )
                for group in units.groups
            },
        )
    return _draw_blocks(scores, matrices, sparsity, scope, pattern, within, protect)


def _draw_rows(
    group: Group,
    matrix: Matrix | None,
    scores: Scores,
    within: Bits | None,
    protect: Bits | None,
    sparsity: float,
) -> Bits:
    """Remove the same fraction of every output row; a bias, with one entry per output, counts as one row."""
    values = _keys(_oriented(scores[group.name], matrix), group.shape, matrix, within, protect, group.name)
    remove = removals(sparsity, values.shape[1])
    if values.dtype == np.int64:
        _check_room(values, remove, f"every row of {group.name}")
    return _packed(keep_in_rows(values, remove), matrix, group.shape)


def _draw_groups(
    matrix: Matrix, scores: Scores, within: Bits | None, protect: Bits | None, pattern: NofM
) -> Bits:
    values = _keys(_oriented(scores[matrix.name], matrix), matrix.shape, matrix, within, protect, matrix.name)
    if values.dtype == np.int64:
        _check_room(
            values.reshape(-1, pattern.of),
            pattern.of - pattern.keep,
            f"every {pattern.of} of {matrix.name}",
        )
    return _packed(keep_in_groups(values, pattern), matrix, matrix.shape)


def _draw_blocks(
    scores: Scores,
    matrices: dict[str, Matrix],
    sparsity: float,
    scope: Scope,
    pattern: Pattern,
    within: Mask | None,
    protect: Mask | None,
) -> Mask:
    """Remove whole blocks by the sum of their scores, ranked over all matrices, per matrix or per row of blocks."""
    assert not isinstance(pattern, NofM)
    blocks: list[RankedGroup] = []
    for name, matrix in matrices.items():
        left = _oriented(within.bools(name), matrix) if within is not None else None
        guarded = _oriented(protect.bools(name), matrix) if protect is not None else None
        size = pattern.outputs * pattern.inputs
        totals = pattern.totals(torch.from_numpy(_checked(_oriented(scores[name], matrix), name)))
        whole = pattern.totals(left.to(torch.int32)) if left is not None else None
        if whole is not None and bool(((whole != 0) & (whole != size)).any()):
            raise TombolaError(
                f"pattern {pattern}: the mask `within` has removed parts of blocks of {name} instead of whole blocks."
            )
        blocks.append(
            RankedGroup(
                name,
                totals,
                within=pack(whole > 0) if whole is not None else None,
                protected=pack(pattern.totals(guarded.to(torch.int32)) > 0) if guarded is not None else None,
            )
        )
    if scope == "row":
        kept = {block.name: _rows_of_blocks(block, sparsity) for block in blocks}
    else:
        kept = {}
        for together in [blocks] if scope == "global" else [[block] for block in blocks]:
            count = sum(block.scores.numel() for block in together)
            kept |= keep_highest_checked(together, removals(sparsity, count), f"blocks of {pattern}")
    shapes = {block.name: tuple(block.scores.shape) for block in blocks}
    return Mask(
        scores.units,
        {
            name: _packed(pattern.spread(unpack(kept[name], shapes[name])).numpy(), matrix, matrix.shape)
            for name, matrix in matrices.items()
        },
    )


def _rows_of_blocks(blocks: RankedGroup, sparsity: float) -> Bits:
    shape = tuple(blocks.scores.shape)
    values = _keys(blocks.scores, shape, None, blocks.within, blocks.protected, blocks.name)
    remove = removals(sparsity, shape[1])
    if values.dtype == np.int64:
        _check_room(values, remove, f"every row of blocks of {blocks.name}")
    return pack(torch.from_numpy(keep_in_rows(values, remove)))


def _bits(mask: Mask | None, group: Group) -> Bits | None:
    return mask.bits[group.name] if mask is not None else None


def _oriented(values: Tensor, matrix: Matrix | None) -> Tensor:
    """Return the stored values as outputs × inputs; a bias as one row."""
    if matrix is None:
        return values.reshape(1, -1) if values.dim() == 1 else values
    return values.T if matrix.transposed else values


def _packed(kept: NDArray[np.bool_], matrix: Matrix | None, shape: tuple[int, ...]) -> Bits:
    """Pack an outputs × inputs matrix in its stored orientation."""
    stored = torch.from_numpy(kept)
    return pack(_oriented(stored, matrix).reshape(shape))


def _checked(scores: Tensor, name: str) -> NDArray[np.float32]:
    values: NDArray[np.float32] = scores.detach().cpu().float().contiguous().numpy()
    if np.isnan(values).any():
        raise TombolaError(f"some scores of {name} are NaN, so no mask can be drawn.")
    return values


def _keys(
    scores: Tensor,
    shape: tuple[int, ...],
    matrix: Matrix | None,
    within: Bits | None,
    protect: Bits | None,
    name: str,
) -> NDArray[np.generic]:
    """Return the scores or, if some units are gone or protected, integers in the same order with those at the ends."""
    values = _checked(scores, name)
    if within is None and protect is None:
        return values
    keys = ordered_keys(values).astype(np.int64)
    if protect is not None:
        keys[_oriented(unpack(protect, shape), matrix).numpy()] = PROTECTED
    if within is not None:
        gone = ~_oriented(unpack(within, shape), matrix).numpy()
        if (keys[gone] == PROTECTED).any():
            raise TombolaError(f"the mask `within` has already removed protected units of {name}.")
        keys[gone] = GONE
    return keys


def _check_room(keys: NDArray[np.generic], remove: int, place: str) -> None:
    """Raise an error if a row has too many units gone or protected to remove exactly `remove`."""
    gone, free = (keys == GONE).sum(axis=1), (keys != PROTECTED).sum(axis=1)
    if (gone > remove).any() or (free < remove).any():
        worst = int(gone.max()) if (gone > remove).any() else int(free.min())
        state = f"{worst} are removed already" if (gone > remove).any() else f"only {worst} may be removed"
        raise TombolaError(f"cannot remove {remove} weights of {place}: in one of them, {state}.")
