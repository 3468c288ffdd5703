"""Bias models: honest out-of-fold predictions, expanded to all labels, and what each may look at."""

import numpy as np
import pytest

from tests.world import World
from tombola.bias import fit
from tombola.bias.fitting import FLOOR, fold_numbers
from tombola.bias.lexical_overlap import LexicalOverlap
from tombola.bias.one_side import OneSide
from tombola.bias.shallow import Shallow
from tombola.bias.synthetic import SyntheticPrefix
from tombola.errors import DataError, RecipeError
from tombola.tasks import Split, Task
from tombola.tasks.synthetic import SyntheticBias, biased

WORDS = ["film", "plot", "scene", "actor", "story", "the", "a", "was", "is", "very"]


def made(task: str, texts: list[tuple[str, ...]], labels: list[int]) -> Split:
    return Split(Task.named(task), "train", texts, labels, [str(i) for i in range(len(labels))], "")


def nli(count: int = 240, seed: int = 0) -> Split:
    """Hypotheses of the premise's words entail; others do not, at random one way or the other."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for i in range(count):
        premise = list(rng.permutation(WORDS)[:6])
        label = int(rng.integers(3))
        inside = rng.random() < (0.9 if label == 0 else 0.1)
        hypothesis = premise[1:4] if inside else list(rng.permutation(["lovely", "dull", "great"]))
        texts.append((f"{' '.join(premise)} {i}", " ".join(hypothesis)))
        labels.append(label)
    return made("mnli", texts, labels)


def accuracy(log_probs: np.ndarray, labels: list[int]) -> float:
    return float((log_probs.argmax(axis=1) == labels).mean())


def test_overlap_tells_entailment_and_shares_out_the_rest(world: World) -> None:
    found = fit(LexicalOverlap(method="lexical_overlap"), nli(), seed=0, vectors=world.model)
    train = found.train
    assert train.shape == (240, 3)
    assert train.dtype == np.float32
    np.testing.assert_allclose(np.exp(train).sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(train[:, 1], train[:, 2])
    assert (
        accuracy(np.exp(train) @ np.array([[1, 0], [0, 1], [0, 1]]), [int(y > 0) for y in nli().labels]) > 0.8
    )
    other = found.log_probs(nli(30, seed=1))
    assert other.shape == (30, 3)


@pytest.mark.parametrize("balanced", [True, False])
def test_the_overlap_model_is_balanced_unless_told_otherwise(world: World, balanced: bool) -> None:
    """With no information, entailment is as likely as not, however rare it is; or else just as rare."""
    rng = np.random.default_rng(0)
    texts = [(f"film was very dull {i}", "film was") for i in range(200)]
    labels = (rng.random(200) > 0.2).astype(int)
    found = fit(
        LexicalOverlap(method="lexical_overlap", predictions="in_sample", balanced=balanced),
        made("mnli", texts, labels.tolist()),
        0,
        world.model,
    )
    expected = 0.5 if balanced else (labels == 0).mean()
    np.testing.assert_allclose(np.exp(found.train[:, 0]), expected, atol=0.05)


def test_out_of_fold_is_not_in_sample() -> None:
    """Labels that nothing tells: a model that has seen an example knows it, one that has not is at chance."""
    rng = np.random.default_rng(1)
    texts = [(f"word{i} other{rng.integers(50)}",) for i in range(300)]
    split = made("sst2", texts, rng.integers(2, size=300).tolist())
    honest = fit(Shallow(method="shallow", examples=None, strength=100), split, seed=0)
    seen = fit(Shallow(method="shallow", examples=None, strength=100, predictions="in_sample"), split, seed=0)
    assert accuracy(seen.train, split.labels) == 1
    assert abs(accuracy(honest.train, split.labels) - 0.5) < 0.1
    np.testing.assert_array_equal(honest.train, fit(honest.settings, split, seed=0).train)
    assert not np.array_equal(honest.train, fit(honest.settings, split, seed=1).train)


def test_examples_that_share_a_text_share_a_fold() -> None:
    texts = [(f"premise {i // 3}", f"hypothesis {i}") for i in range(300)] + [("premise 0", "hypothesis 299")]
    folds = fold_numbers(made("mnli", texts, [0] * 301), 5, seed=0)
    assert (folds[:300].reshape(100, 3).std(axis=1) == 0).all()
    assert folds[300] == folds[0] == folds[299]
    assert np.bincount(folds).min() > 30


def test_siblings_of_all_labels_do_not_turn_predictions_round() -> None:
    """Each premise under every label: with siblings in the training part, the words of a premise speak against."""
    texts = [(f"only{i // 3} here{i // 3}", "nothing") for i in range(600)]
    split = made("mnli", texts, [i % 3 for i in range(600)])
    found = fit(Shallow(method="shallow", examples=None, strength=10), split, seed=0)
    assert np.exp(found.train[np.arange(600), split.labels]).mean() > 0.32


def test_one_side_reads_one_text() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(3, size=300).tolist()
    texts = [
        (f"evidence {i}", f"{('plain', 'never', 'maybe')[label]} claim {i}") for i, label in enumerate(labels)
    ]
    split = made("fever", texts, labels)
    assert accuracy(fit(OneSide(method="one_side"), split, seed=0).train, labels) == 1
    blind = fit(OneSide(method="one_side", column="evidence"), split, seed=0)
    assert accuracy(blind.train, labels) < 0.5
    with pytest.raises(
        RecipeError, match=r"bias\.column: unknown text of fever 'claims'. Did you mean 'claim'"
    ):
        fit(OneSide(method="one_side", column="claims"), split, seed=0)


def test_shallow_sees_so_many_examples() -> None:
    labels = [i % 2 for i in range(1000)]
    split = made("sst2", [(f"{'good' if y else 'bad'} {i}",) for i, y in enumerate(labels)], labels)
    few = fit(Shallow(method="shallow", examples=20), split, seed=0)
    assert len(few.model[0].vocabulary_) <= 22
    assert accuracy(few.train, labels) == 1


def test_the_synthetic_bias_is_learned_as_it_was_made() -> None:
    rng = np.random.default_rng(3)
    plain = made("sst2", [(f"text {i}",) for i in range(3000)], rng.integers(2, size=3000).tolist())
    split = biased(plain, SyntheticBias(share=0.6, right=0.9))
    found = fit(SyntheticPrefix(method="synthetic"), split, seed=0)
    prefixed = np.array(split.columns["prefix"]) != ""
    assert abs(np.exp(found.train[prefixed].max(axis=1)).mean() - 0.9) < 0.03
    assert np.exp(found.train[~prefixed].max(axis=1)).max() < 0.56
    anti = biased(plain, SyntheticBias(share=0.6, right=0.9), "anti")
    assert accuracy(found.log_probs(anti), plain.labels) == 0
    assert len(np.unique(found.log_probs(plain), axis=0)) == 1
    with pytest.raises(RecipeError, match=r"data\.synthetic_bias, which is not set"):
        SyntheticPrefix().fit(plain, seed=0)


def test_a_label_that_was_never_seen_keeps_a_finite_chance() -> None:
    texts = [(f"evidence {i}", f"{'yes' if i % 2 else 'no'} {i}") for i in range(100)]
    found = fit(
        OneSide(method="one_side", strength=1e6), made("fever", texts, [i % 2 for i in range(100)]), seed=0
    )
    assert np.isfinite(found.train).all()
    assert found.train[:, 2].max() < FLOOR + 0.1


def test_what_cannot_be_fitted_is_said(world: World) -> None:
    with pytest.raises(DataError, match="at least two different labels"):
        fit(Shallow(method="shallow"), made("sst2", [("a",), ("b",), ("c",)], [1, 1, 1]), seed=0)
    with pytest.raises(RecipeError, match="needs pairs of texts, but sst2 has one text"):
        fit(LexicalOverlap(method="lexical_overlap"), made("sst2", [("a",), ("b",)], [0, 1]), 0, world.model)
    with pytest.raises(RecipeError, match=r"bias\.label: unknown label of mnli 'entails'"):
        fit(LexicalOverlap(method="lexical_overlap", label="entails"), nli(), 0, world.model)


def test_texts_without_words_are_reported(world: World) -> None:
    silent = made("rte", [(f"it is {i}", "?!") for i in range(20)], [0, 1] * 10)
    with pytest.raises(DataError, match=r"bias: one_side reads words, but the texts of the .* have none"):
        fit(OneSide(method="one_side"), silent, seed=0)
    empty = made("rte", [("...", "?!")] * 20, [0, 1] * 10)
    found = fit(LexicalOverlap(method="lexical_overlap", predictions="in_sample"), empty, 0, world.model)
    np.testing.assert_allclose(np.exp(found.train), 0.5, atol=1e-6)
