"""The lexical-overlap features of the debiasing literature, on pairs whose values are known."""

import numpy as np

from tests.world import World
from tombola.bias.lexical_overlap import LexicalOverlap
from tombola.bias.overlap import FEATURES, Features, contiguous, overlap_features, word_vectors


def features(world: World, premise: str, hypothesis: str, kind: Features = "ours") -> dict[str, float]:
    (row,) = overlap_features([(premise, hypothesis)], world.model, kind)
    return dict(zip(FEATURES[kind], row.tolist(), strict=True))


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


def test_the_published_features_have_a_length_difference_and_the_second_least_similarity(
    world: World,
) -> None:
    premise, hypothesis = "the film was very dull", "lovely great film"
    found, ours = (features(world, premise, hypothesis, kind) for kind in ("published", "ours"))
    unit = word_vectors([*premise.split(), *hypothesis.split()], world.model)
    nearest = sorted((unit[5:] @ unit[:5].T).max(axis=1))
    np.testing.assert_allclose(found["least similarity"], nearest[0], rtol=1e-5)
    np.testing.assert_allclose(found["second-least similarity"], nearest[1], rtol=1e-5)
    assert found["log length difference"] == np.log(2)
    assert {name: found[name] for name in ours if name in found} == {
        name: value for name, value in ours.items() if name != "log length ratio"
    }


def test_a_longer_hypothesis_and_one_of_a_single_word(world: World) -> None:
    found = features(world, "film", "the film was dull", "published")
    assert found["log length difference"] == 0
    assert features(world, "the film", "dull", "published")["second-least similarity"] == 0


def test_the_published_model_is_all_but_free_of_a_penalty() -> None:
    assert LexicalOverlap(method="lexical_overlap").strength == 1
    assert LexicalOverlap(method="lexical_overlap", feature_set="published").strength == 100
    chosen = LexicalOverlap(method="lexical_overlap", feature_set="published", strength=1.0)
    assert chosen.strength == 1
    for settings in (chosen, LexicalOverlap(method="lexical_overlap", feature_set="published")):
        assert LexicalOverlap.model_validate(settings.model_dump(exclude_defaults=True)) == settings
