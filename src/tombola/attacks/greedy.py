"""The greedy search of most word attacks: rank the words, then replace each by its most harmful candidate."""

from collections.abc import Callable, Sequence

import numpy as np

from tombola.attacks.constraints import Constraint, satisfying
from tombola.attacks.lockstep import BudgetSpent
from tombola.attacks.requests import Steps, ask, similarity
from tombola.attacks.text import Text, same_case

Probe = Callable[[int], Text]
"""Returns the text with the word at a position hidden from the model."""

Choice = Callable[[Text, list[Text]], Steps[Text]]
"""Chooses among successful candidates: (the text before, candidates by decreasing harm) → one of them."""


def importance(text: Text, label: int, positions: list[int], probe: Probe) -> Steps[np.ndarray]:
    """Return each word's importance: the drop in the label's probability when the word is hidden."""
    original = (yield from ask([text]))[0]
    without = yield from ask([probe(i) for i in positions])
    return np.array([original[label] - row[label] for row in without])


def by_importance(text: Text, label: int, positions: list[int], probe: Probe) -> Steps[list[int]]:
    """Return the positions by decreasing importance; ties keep their order."""
    weights = yield from importance(text, label, positions, probe)
    return ranked(positions, weights)


def ranked(positions: list[int], weights: np.ndarray) -> list[int]:
    """Return the positions by decreasing weight; ties keep their order."""
    return [positions[i] for i in np.argsort(-weights, kind="stable").tolist()]


def substitution(text: Text, token: str) -> Probe:
    """Return a probe that replaces a word with a special token."""
    return lambda position: text.replace(position, token)


def replace_greedily(
    text: Text,
    label: int,
    order: Sequence[int],
    candidates: Callable[[Text, int], list[Text]],
    constraints: Sequence[Constraint],
    choose: Choice | None = None,
) -> Steps[Text]:
    """Word by word in `order`, score the candidates that satisfy the constraints and keep the most harmful one.

    A word whose candidates all raise the label's probability stays. The search ends when the label changes; `choose`
    then picks among the candidates that changed it (by default the most harmful). If the query budget runs out among a
    word's candidates, those scored so far count.
    """
    current = text
    lowest = (yield from ask([text]))[0][label]
    for position in order:
        allowed = yield from satisfying(constraints, current, candidates(current, position))
        if not allowed:
            continue
        scores = yield from _ask_within_budget(allowed)
        by_harm = np.argsort(scores[:, label], kind="stable").tolist()
        winners = [allowed[i] for i in by_harm if int(scores[i].argmax()) != label]
        if winners:
            return (yield from choose(text, winners)) if choose else winners[0]
        if scores[by_harm[0], label] < lowest:
            current, lowest = allowed[by_harm[0]], scores[by_harm[0], label]
    return current


def _ask_within_budget(texts: list[Text]) -> Steps[np.ndarray]:
    """Request probabilities, for the first of the texts alone if the budget ends with them."""
    try:
        return (yield from ask(texts))
    except BudgetSpent as spent:
        if not spent.answers:
            raise
        return np.array(spent.answers)


def most_similar(text: Text, winners: list[Text]) -> Steps[Text]:
    """Choose the successful candidate that the encoder finds most similar to the original."""
    if len(winners) == 1:
        return winners[0]
    cosines = yield from similarity([(str(text), str(winner)) for winner in winners])
    return winners[int(np.argmax(cosines))]


def swaps(words: Callable[[str], list[str]]) -> Callable[[Text, int], list[Text]]:
    """Return a function that builds candidates with other words, capitalised like the word they replace."""

    def candidates(current: Text, position: int) -> list[Text]:
        old = current.words[position]
        return [current.replace(position, same_case(new, like=old)) for new in words(old)]

    return candidates
