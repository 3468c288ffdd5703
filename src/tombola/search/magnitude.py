"""One-shot magnitude pruning: the smallest weights of the starting model go. (BERT-Tickets, section 3)"""

from typing import TYPE_CHECKING, Literal

from tombola.masks import Scores, Units
from tombola.search import Evidence, ScorerSettings, scorer

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Magnitude(ScorerSettings):
    """Settings of one-shot magnitude pruning (OMP when it starts from the pre-trained weights)."""

    method: Literal["magnitude"] = "magnitude"


@scorer(Magnitude)
def magnitude(settings: Magnitude, model: "PreTrainedModel", units: Units, evidence: Evidence) -> Scores:
    """Remove the smallest weights (structured units: the smallest mean absolute weight)."""
    return Scores.magnitude(units, model)
