"""Wanda: remove the weights with the smallest |w| times input norm in every output row. (Sun et al. 2024)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tombola.search import Evidence, scorer
from tombola.search.layerwise import ScoredSettings, dense_scores

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from tombola.masks import Scores, Units


class Wanda(ScoredSettings):
    """Settings of Wanda."""

    method: Literal["wanda"] = "wanda"

    def score(self, weight: Tensor, squares: Tensor) -> Tensor:
        """|w| · ‖x‖₂, with the norm of the weight's input over all real tokens of the calibration data."""
        return weight.abs().float().mul_(squares.sqrt().float())


@scorer(Wanda)
def wanda(settings: Wanda, model: PreTrainedModel, units: Units, evidence: Evidence) -> Scores:
    """Remove the weights with the smallest |w| · ‖x‖₂ of every output row, where x is the weight's input."""
    return dense_scores(settings, model, units, evidence)
