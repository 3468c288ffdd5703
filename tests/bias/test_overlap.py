"""The lexical-overlap features of the debiasing literature, on pairs whose values are known."""

import numpy as np

from tests.world import World
from tombola.bias.overlap import FEATURES, contiguous, overlap_features, word_vectors


def features(world: World, premise: str, hypothesis: str) -> dict[str, float]:
    (row,) = overlap_features([(premise, hypothesis)], world.model)
    return dict(zip(FEATURES, row.tolist(), strict=True))


def test_a_part_of_the_premise(world: World) -> None:
    found = features(world, "The plot was very dull, a flat film.", "the PLOT was very dull")
    assert found["all words"] == found["contiguous"] == found["share of words"] == 1
    np.testing.assert_allclose([found["mean similarity"], found["least similarity"]], 1, atol=1e-6)
    np.testing.assert_allclose(found["log length ratio"], np.log(9 / 6))


def test_the_same_words_in_another_order_are_not_contiguous(world: World) -> None:
    found = features(world, "the actor is the story", "the story is the actor")
    assert (found["all words"], found["contiguous"], found["share of words"]) == (1, 0, 1)


def test_a_new_word_is_as_near_as_its_nearest(world: World) -> None:
    premise, hypothesis = ["film", "was", "dull"], ["film", "was", "lovely", "lovely"]
    found = features(world, " ".join(premise), " ".join(hypothesis))
    unit = word_vectors([*premise, "lovely"], world.model)
    nearest = float((unit[:3] @ unit[3]).max())
    assert (found["all words"], found["share of words"]) == (0, 0.5)
    np.testing.assert_allclose(found["least similarity"], nearest, rtol=1e-5)
    np.testing.assert_allclose(found["mean similarity"], (2 + 2 * nearest) / 4, rtol=1e-5)
    assert nearest < 0.999


def test_texts_without_words_overlap_with_nothing(world: World) -> None:
    assert features(world, "film", "...")["all words"] == 0


def test_contiguous() -> None:
    assert contiguous(["b", "c"], ["a", "b", "c"])
    assert not contiguous(["a", "c"], ["a", "b", "c"])
    assert not contiguous(["a", "b", "c", "d"], ["a", "b", "c"])
