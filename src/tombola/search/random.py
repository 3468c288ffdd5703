"""Random pruning: the control that any search must beat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from tombola.foundations.seeds import numbered_seed
from tombola.search import Evidence, ScorerSettings, scorer

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.masks import Scores, Units


class Random(ScorerSettings):
    """Settings of the uniform random mask."""

    method: Literal["random"] = "random"
    mask_number: int = Field(0, ge=0, description="index of the random mask within the run")


@scorer(Random)
def random(settings: Random, model: PreTrainedModel, units: Units, evidence: Evidence) -> Scores:
    """Remove units uniformly at random, without replacement, at the exact rate."""
    from tombola.masks.drawing import random_scores

    return random_scores(units, numbered_seed(evidence.seed, settings.mask_number))
