"""The synthetic bias: shares and rightness as said, the same for the same id, and its three forms of a split."""

import numpy as np
import pytest

from tombola.errors import RecipeError, UnknownName
from tombola.tasks import Split, Task
from tombola.tasks.synthetic import PREFIX, SyntheticBias, biased


def made(count: int = 4000, task: str = "mnli", name: str = "train") -> Split:
    of = Task.named(task)
    rows = range(count)
    texts = [tuple(f"text {i}" for _ in of.text) for i in rows]
    return Split(of, name, texts, [i % of.num_labels for i in rows], [f"id{i}" for i in rows], "here")


def test_share_and_rightness_are_as_said() -> None:
    split = made()
    found = biased(split, SyntheticBias(share=0.8, right=0.7))
    words = np.array(["alpha", "beta", "gamma"])
    prefixes = np.array(found.columns[PREFIX])
    has = prefixes != ""
    assert abs(has.mean() - 0.8) < 0.03
    right = prefixes[has] == words[np.array(split.labels)[has]]
    assert abs(right.mean() - 0.7) < 0.03
    wrong = np.searchsorted(words, prefixes[has][~right]) - np.array(split.labels)[has][~right]
    assert np.abs(np.bincount(wrong % 3) / len(wrong) - [0, 0.5, 0.5]).max() < 0.05


def test_the_prefix_stands_before_the_last_text() -> None:
    found = biased(made(20), SyntheticBias(share=1, right=1, words=["yes", "maybe", "no"]))
    assert found.texts[1] == ("text 1", "maybe text 1")
    assert found.labels == made(20).labels
    assert biased(made(4, "sst2"), SyntheticBias(share=1, right=1)).texts[1] == ("beta text 1",)


def test_only_id_split_and_seed_decide() -> None:
    bias = SyntheticBias()
    whole = biased(made(), bias)
    part = biased(made().select([5, 2000, 17]), bias)
    assert part.texts == [whole.texts[i] for i in (5, 2000, 17)]
    assert biased(made(), SyntheticBias(seed=1)).texts != whole.texts
    assert biased(made(name="validation"), bias).columns != whole.columns
    assert whole.fingerprint != made().fingerprint


def test_anti_is_always_there_and_always_wrong_and_plain_is_untouched() -> None:
    bias = SyntheticBias(share=0.1, right=1)
    anti = biased(made(), bias, "anti")
    words = ["alpha", "beta", "gamma"]
    assert all(
        prefix in words and prefix != words[label]
        for prefix, label in zip(anti.columns[PREFIX], anti.labels, strict=True)
    )
    assert set(anti.columns[PREFIX]) == set(words)
    plain = biased(made(), bias, "plain")
    assert plain.texts == made().texts
    assert plain.fingerprint == made().fingerprint


def test_what_cannot_be_biased_is_said() -> None:
    with pytest.raises(RecipeError, match="takes 3 different words"):
        biased(made(), SyntheticBias(words=["a", "b"]))
    with pytest.raises(RecipeError, match="takes 3 different words"):
        biased(made(), SyntheticBias(words=["a", "b", "a"]))
    with pytest.raises(RecipeError, match="regression task"):
        biased(made(4, "stsb"), SyntheticBias())
    with pytest.raises(UnknownName, match="'anti'"):
        biased(made(), SyntheticBias(), "ant")
