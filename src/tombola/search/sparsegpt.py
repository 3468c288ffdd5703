"""SparseGPT: the remaining weights compensate for the removed ones, column by column. (Frantar & Alistarh 2023)"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tombola.errors import TombolaError
from tombola.foundations.lazy import lazy_module
from tombola.masks.names import Scope
from tombola.search import Found, StageBuilder, draw_in_order, plan
from tombola.search.input_statistics import StatisticName
from tombola.search.layerwise import LayerwiseSettings

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tombola.masks import patterns
    from tombola.masks.in_matrices import MatrixSelection
else:
    torch, patterns = lazy_module("torch"), lazy_module("tombola.masks.patterns")

Choose = Callable[["Tensor", int], "Tensor"]
"""Chooses which weights of a strip of columns stay, given their scores and the strip's first column."""


class SparseGPT(LayerwiseSettings):
    """Settings of SparseGPT, which updates the remaining weights."""

    statistic: ClassVar[StatisticName] = "hessian"
    usual_scope: ClassVar[Scope] = "local"

    method: Literal["sparsegpt"] = "sparsegpt"
    damping: float = Field(
        0.01, gt=0, description="addition to the Hessian's diagonal, as a share of its mean"
    )
    block: int = Field(
        128,
        gt=0,
        description="columns whose mask is chosen together, before later columns compensate for their errors",
    )

    @property
    def layerwise(self) -> bool:
        """Always: each layer is reconstructed from the outputs of the pruned layers before it."""
        return True

    @property
    def changes_weights(self) -> bool:
        """Always: the method reconstructs the remaining weights."""
        return True

    def prune(self, weight: Tensor, statistic: Tensor, selection: MatrixSelection) -> Tensor:
        """Remove the weights that are easiest to compensate for, and update the rest of their row."""
        pattern = selection.pattern
        together = {patterns.NofM: "of", patterns.Blocks: "inputs"}.get(type(pattern))
        unit = 1 if together is None else int(getattr(pattern, together))
        block = max(self.block // unit, 1) * unit
        at_once = unit if isinstance(pattern, patterns.NofM) else block
        return reconstruct(
            weight, statistic, selection.keep, damping=self.damping, block=block, at_once=at_once
        )


@plan(SparseGPT)
def sparsegpt(settings: SparseGPT, builder: StageBuilder, sparsity: float) -> Found:
    """Remove the weights for which the rest of their row can best compensate, and update the rest accordingly."""
    return draw_in_order(settings, builder, sparsity)


def reconstruct(
    weight: Tensor, hessian: Tensor, choose: Choose, *, damping: float, block: int, at_once: int
) -> Tensor:
    """Prune a matrix in place so that its outputs change little, and return the mask.

    Columns are pruned from first to last. If a weight w in column i is removed, the columns after i of its row change
    by −w / U_ii · U_i,>i, with the upper Cholesky factor U of the inverse Hessian: the optimal brain surgeon's update
    of these columns, and the exact solution of the least-squares problem min ‖(W − W')X‖² over them while the columns
    before stay fixed. The score of a weight is w² / U_ii², the error of that solution.

    Args:
        weight: The matrix, outputs × inputs.
        hessian: X'X of its inputs.
        choose: Chooses which weights of a strip stay.
        damping: The constant added to the diagonal, as a fraction of its mean.
        block: The number of columns after which errors propagate to the later columns, in one product.
        at_once: The number of columns whose mask is chosen together; divides `block`.
    """
    columns = weight.shape[1]
    factor = _inverse_factor(hessian, damping)
    new = weight.detach().float().clone()
    kept = torch.ones_like(new, dtype=torch.bool)
    for start in range(0, columns, block):
        end = min(start + block, columns)
        within, diagonal = factor[start:end, start:end], factor.diagonal()[start:end]
        strip = new[:, start:end]
        errors = torch.zeros_like(strip)
        for column in range(end - start):
            if column % at_once == 0:
                chosen = slice(column, min(column + at_once, end - start))
                scores = (strip[:, chosen] / diagonal[chosen]) ** 2
                kept[:, start:end][:, chosen] = choose(scores, start + column)
            gone = ~kept[:, start + column]
            error = torch.where(gone, strip[:, column], 0.0) / diagonal[column]
            strip[:, column:].addr_(error, within[column, column:], alpha=-1)
            strip[:, column].masked_fill_(gone, 0.0)
            errors[:, column] = error
        new[:, end:].addmm_(errors, factor[start:end, end:], alpha=-1)
    weight.copy_(new)
    return kept


def _inverse_factor(hessian: Tensor, damping: float) -> Tensor:
    """Return the upper Cholesky factor of the damped Hessian's inverse, in double precision if single fails.

    Apple's GPUs have no double precision.
    """
    mean = float(hessian.diagonal().mean())
    for precision in (torch.float32, torch.float64):
        doubled = hessian.is_mps and precision == torch.float64
        damped = (hessian.cpu() if doubled else hessian).to(precision, copy=True)
        damped.diagonal().add_(damping * mean if mean > 0 else 1.0)
        lower, wrong = torch.linalg.cholesky_ex(damped)
        if int(wrong):
            continue
        factor, wrong = torch.linalg.cholesky_ex(torch.cholesky_inverse(lower), upper=True)
        if not int(wrong) and bool(factor.isfinite().all()):
            inverse: Tensor = factor.float().to(hessian.device)
            return inverse
    raise TombolaError(
        "search.damping: the inputs of a matrix are so similar that its Hessian cannot be inverted: increase the "
        "damping, or calibrate on more examples (search.calibration.examples)"
    )
