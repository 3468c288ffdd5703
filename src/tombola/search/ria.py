"""RIA: relative importance and activations, so that no row or column is emptied. (Zhang et al. 2024)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from tombola.search import Evidence, scorer
from tombola.search.layerwise import ScoredSettings, dense_scores

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from tombola.masks import Scores, Units


class Ria(ScoredSettings):
    """Settings of RIA."""

    method: Literal["ria"] = "ria"
    exponent: float = Field(0.5, ge=0, description="a: exponent of the input's norm; 0 ignores it")

    def score(self, weight: Tensor, squares: Tensor) -> Tensor:
        """(|w| / Σ of its column + |w| / Σ of its row) · ‖x‖₂ᵃ; a row or column of zeros scores 0."""
        sizes = weight.abs().float()
        smallest = sizes.new_tensor(1e-30)
        columns = sizes.sum(dim=0, keepdim=True).maximum(smallest)
        rows = sizes.sum(dim=1, keepdim=True).maximum(smallest)
        return (sizes / columns + sizes / rows) * squares.sqrt().float() ** self.exponent


@scorer(Ria)
def ria(settings: Ria, model: PreTrainedModel, units: Units, evidence: Evidence) -> Scores:
    """Remove the weights that matter least to their row and column, weighted by the norm of their input."""
    return dense_scores(settings, model, units, evidence)
