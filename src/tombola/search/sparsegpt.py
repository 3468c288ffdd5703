"""SparseGPT: what is left of a matrix makes up for what goes, column by column. (Frantar & Alistarh 2023)"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tombola.errors import TombolaError
from tombola.foundations.lazy import lazy_module
from tombola.masks.names import Scope
from tombola.search import Found, StageBuilder, draw_in_order, plan
from tombola.search.calibration import StatisticName
from tombola.search.layerwise import LayerwiseSettings

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tombola.masks import patterns
    from tombola.masks.in_matrices import Selection
else:
    torch, patterns = lazy_module("torch"), lazy_module("tombola.masks.patterns")

Choose = Callable[["Tensor", int], "Tensor"]
"""Which weights of a strip of columns stay, by their scores and the strip's first column."""


class SparseGPT(LayerwiseSettings):
    """Settings of SparseGPT. It leaves new weights besides the mask."""

    statistic: ClassVar[StatisticName] = "hessian"
    usual_scope: ClassVar[Scope] = "local"

    method: Literal["sparsegpt"] = "sparsegpt"
    damping: float = Field(
        0.01, gt=0, description="what is added to the Hessian's diagonal, as a share of its mean"
    )
    block: int = Field(
        128, gt=0, description="columns whose mask is chosen at once, before their errors reach later columns"
    )

    @property
    def layerwise(self) -> bool:
        """Always: weights of a layer answer to what the pruned layers before it give."""
        return True

    @property
    def changes_weights(self) -> bool:
        """Always: that is what it is for."""
        return True

    def prune(self, weight: Tensor, statistic: Tensor, selection: Selection) -> Tensor:
        """Remove the weights whose loss can best be made up for, and make up for it."""
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
    """Remove the weights that the rest of their row can best make up for, and change the rest so that it does."""
    of = builder.train(stop_at=settings.starts_at) if settings.start == "finetuned" else None
    return draw_in_order(settings, builder, sparsity, of)


def reconstruct(
    weight: Tensor, hessian: Tensor, choose: Choose, *, damping: float, block: int, at_once: int
) -> Tensor:
    """Prune a matrix in place so that its outputs change little, and give the mask of what is left.

    Columns go from the first to the last. Where a weight w of column i goes, the columns after i of its row change by
    −w / U_ii · U_i,>i, with the upper Cholesky factor U of the inverse Hessian: that is the optimal brain surgeon's
    update of these columns, and the exact solution of the least-squares problem min ‖(W − W')X‖² over them while the
    columns before stay as they are. The score of a weight is w² / U_ii², the error of that solution.

    Args:
        weight: The matrix, outputs by inputs.
        hessian: X'X of its inputs.
        choose: Which weights of a strip stay.
        damping: What is added to the diagonal, as a share of its mean.
        block: Columns after which errors reach the columns behind them, in one product.
        at_once: Columns whose mask is chosen at once; divides `block`.
    """
    columns = weight.shape[1]
    factor = _inverse_factor(hessian, damping)
    new = weight.detach().float().clone()
    kept = torch.ones_like(new, dtype=torch.bool)
    for start in range(0, columns, block):
        end = min(start + block, columns)
        own, diagonal = factor[start:end, start:end], factor.diagonal()[start:end]
        strip = new[:, start:end]
        errors = torch.zeros_like(strip)
        for column in range(end - start):
            if column % at_once == 0:
                chosen = slice(column, min(column + at_once, end - start))
                scores = (strip[:, chosen] / diagonal[chosen]) ** 2
                kept[:, start:end][:, chosen] = choose(scores, start + column)
            gone = ~kept[:, start + column]
            error = torch.where(gone, strip[:, column], 0.0) / diagonal[column]
            strip[:, column:].addr_(error, own[column, column:], alpha=-1)
            strip[:, column].masked_fill_(gone, 0.0)
            errors[:, column] = error
        new[:, end:].addmm_(errors, factor[start:end, end:], alpha=-1)
    weight.copy_(new)
    return kept


def _inverse_factor(hessian: Tensor, damping: float) -> Tensor:
    """The upper Cholesky factor of the inverse of the damped Hessian, in double precision where single fails."""
    mean = float(hessian.diagonal().mean())
    for precision in (torch.float32, torch.float64):
        damped = hessian.to(precision, copy=True)
        damped.diagonal().add_(damping * mean if mean > 0 else 1.0)
        lower, wrong = torch.linalg.cholesky_ex(damped)
        if int(wrong):
            continue
        factor, wrong = torch.linalg.cholesky_ex(torch.cholesky_inverse(lower), upper=True)
        if not int(wrong) and bool(factor.isfinite().all()):
            found: Tensor = factor.float()
            return found
    raise TombolaError(
        "search.damping: the inputs of a matrix are so alike that its Hessian cannot be inverted: raise it, or "
        "calibrate on more examples (search.calibration.examples)"
    )
