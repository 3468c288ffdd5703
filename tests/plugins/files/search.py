"""A search that composes trainings and draws: the mask of the weights that training moved least."""

from typing import Literal

from tombola.masks import Scores
from tombola.search import Found, ScorerSettings, SearchSettings, plan, scorer


class Largest(ScorerSettings):
    """Settings of a score that keeps the smallest weights."""

    method: Literal["largest"] = "largest"


@scorer(Largest)
def largest(settings, model, units, evidence):
    """Remove the largest weights."""
    return Scores(units, {name: -scores for name, scores in Scores.magnitude(units, model).items()})


class TwoRounds(SearchSettings):
    """Settings of two rounds of it."""

    method: Literal["two_rounds"] = "two_rounds"


@plan(TwoRounds)
def two_rounds(settings, builder, sparsity):
    """Half of it, train, and the other half."""
    first = builder.draw(Largest(), sparsity / 2)
    trained = builder.train(mask=first)
    return Found(builder.draw(Largest(), sparsity, of=trained, within=first), trained=trained)
