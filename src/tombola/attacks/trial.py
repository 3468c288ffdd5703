"""Attack one example, from its first scoring to the record of its result, and many of them at once."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np

from tombola.attacks.base import Attack, Tools
from tombola.attacks.lockstep import BudgetSpent, Lane, run
from tombola.attacks.material import Material
from tombola.attacks.report import Example, ResultType
from tombola.attacks.requests import (
    MASKED_LM,
    MODEL,
    SIMILAR,
    SIMILARITY,
    Oracle,
    Oracles,
    Steps,
    ask,
    similarity,
)
from tombola.attacks.resources import Resources
from tombola.attacks.text import Text


class Outcome(NamedTuple):
    """The outcome of a trial: the last text, the probabilities before and after, and the texts' similarity."""

    text: Text
    before: np.ndarray
    after: np.ndarray
    similarity: float | None = None


def trial(attack: Attack, text: Text, truth: int, tools: Tools) -> Steps[Outcome]:
    """Attack a text if the model classifies it correctly. If the budget runs out, the text stays unchanged."""
    before = (yield from ask([text]))[0]
    if int(before.argmax()) != truth:
        return Outcome(text, before, before)
    try:
        final = yield from attack.perturb(text, truth, tools)
        after = (yield from ask([final]))[0]
    except BudgetSpent:
        return Outcome(text, before, before)
    if int(after.argmax()) == truth or tools.resources.encoder is None:
        return Outcome(final, before, after)
    return Outcome(final, before, after, (yield from similarity([(str(text), str(final))]))[0])


def attack_examples(
    attack: Attack,
    material: Material,
    indices: Sequence[int],
    oracles: Oracles,
    tools: Tools,
    *,
    seed: int = 0,
    lanes: int = 128,
    budget: int | None = None,
) -> Iterator[Example]:
    """Yield the examples at `indices` as their attacks end. Randomness depends only on seed and index."""

    def trials() -> Iterator[tuple[int, Steps[Outcome]]]:
        for i in indices:
            own_tools = replace(tools, random=Random(f"{seed}:{i}"))
            yield i, trial(attack, Text(material.texts[i]), material.truths[i], own_tools)

    for lane in run(trials(), oracles, lanes=lanes, budget=budget):
        yield _example(lane, material)


def oracles_of(model: Oracle, resources: Resources) -> Oracles:
    """Return the model and the other oracles of an attack; each resource is loaded on first use."""
    return {
        MODEL: model,
        SIMILARITY: lambda pairs: resources.similarity(pairs),
        SIMILAR: lambda pairs: resources.similarity.at_least(pairs),
        MASKED_LM: lambda questions: resources.masked_lm(questions),
    }


def _example(lane: Lane[Outcome], material: Material) -> Example:
    assert lane.outcome is not None
    text, before, after, similarity = lane.outcome
    pairs: list[Any] = [key for oracle, key in lane.known if oracle in (SIMILARITY, SIMILAR)]
    truth = material.truths[lane.index]
    old, new = int(before.argmax()), int(after.argmax())
    result: ResultType = "Skipped" if old != truth else "Successful" if new != truth else "Failed"
    return Example(
        index=lane.index,
        original=material.texts[lane.index],
        changes=text.changes,
        ground_truth_output=truth,
        original_output=old,
        perturbed_output=new,
        original_score=1 - float(before[truth]),
        perturbed_score=1 - float(after[truth]),
        num_queries=lane.queries,
        result_type=result,
        similarity=similarity,
        rows=sum(oracle == MODEL for oracle, _ in lane.known),
        similarity_rows=len({text for pair in pairs for text in pair[:2]}),
    )
