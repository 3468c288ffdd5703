"""One-shot magnitude pruning: remove the smallest weights of the starting model. (BERT-Tickets, section 3)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tombola.search import Evidence, ScorerSettings, scorer

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.masks import Scores, Units


class Magnitude(ScorerSettings):
    """Settings of one-shot magnitude pruning (OMP when it starts from the pre-trained weights)."""

    method: Literal["magnitude"] = "magnitude"


@scorer(Magnitude)
def magnitude(settings: Magnitude, model: PreTrainedModel, units: Units, evidence: Evidence) -> Scores:
    """Remove the smallest weights (structured units: the smallest mean absolute weight)."""
    from tombola.masks import Scores

    return Scores.magnitude(units, model)
