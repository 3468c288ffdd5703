from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertConfig

from tests.attacks.toys import material
from tombola.attacks.material import Material
from tombola.errors import DataError, UnknownName
from tombola.tasks import Task

CONFIG = BertConfig(num_labels=2)


def test_the_sample_is_balanced_random_and_nested():
    pool = material([(f"text {i}", int(i % 10 == 0)) for i in range(200)])
    chosen = pool.sample(20, seed=1)
    assert Counter(pool.truths[i] for i in chosen) == {0: 10, 1: 10}
    assert chosen == sorted(chosen) == pool.sample(20, seed=1)
    assert chosen != pool.sample(20, seed=2)
    assert chosen != list(range(20))
    assert set(chosen) < set(pool.sample(21, seed=1))
    assert pool.sample(None, seed=1) == list(range(200))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30), st.data())
def test_no_class_is_preferred_while_others_have_examples_left(truths, data):
    pool = material([("text", truth) for truth in truths], 3)
    n = data.draw(st.integers(1, len(truths)))
    taken = Counter(truths[i] for i in pool.sample(n, seed=0))
    total = Counter(truths)
    assert sum(taken.values()) == n
    for label in total:
        assert taken[label] == total[label] or taken[label] >= max(taken.values()) - 1


def test_a_split_brings_its_columns_labels_and_what_may_be_changed(tmp_path):
    (tmp_path / "d.jsonl").write_text('{"p": "a b", "h": "c", "label": "yes"}\n')
    (tmp_path / "t.yaml").write_text(
        "{name: t, version: 1, text: [p, h], labels: ['no', 'yes'], metrics: [accuracy], attackable: [h], "
        "source: {files: {dev: d.jsonl}}}"
    )
    found = Material.of(Task.from_file(tmp_path / "t.yaml").load("dev"), CONFIG)
    assert found == Material([("a b", "c")], [1], ["p", "h"], ["no", "yes"], ["h"])
    assert found.attackable_columns == {1}


def test_lists_of_texts_and_of_pairs():
    config = BertConfig(id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1})
    assert Material.of([("a", 1)], config) == Material([("a",)], [1], ["text"], ["bad", "good"], ["text"])
    pairs = Material.of([(("a", "b"), 0)], config, attackable=["text2"])
    assert (pairs.columns, pairs.attackable_columns) == (["text1", "text2"], {1})


@pytest.mark.parametrize(
    ("examples", "reason"),
    [
        ([], "empty"),
        ([("a", 2)], "label 2"),
        ([("a", 1), ("a \ud83d", 1)], "Example 1 contains half of a character"),
        ([("a", -1)], "label -1"),
        ([(("a", "b"), 0), ("c", 1)], "Example 1 has 1 texts"),
    ],
)
def test_what_cannot_be_attacked_is_refused(examples, reason):
    with pytest.raises(DataError, match=reason):
        Material.of(examples, CONFIG)


def test_wrong_names_are_refused():
    with pytest.raises(UnknownName, match="attackable"):
        Material.of([("a", 1)], CONFIG, attackable=["txt"])
    with pytest.raises(DataError, match="label names"):
        Material.of([("a", 1)], CONFIG, labels=["one"])
    with pytest.raises(DataError, match="single output"):
        Material.of([("a", 1)], BertConfig(num_labels=1))
    for n in (0, 2):
        with pytest.raises(DataError, match=f"Cannot attack {n} examples: choose from 1 to 1, which is all"):
            Material.of([("a", 1)], CONFIG).sample(n, seed=0)
    with pytest.raises(DataError, match="seed: takes 0 or more, not -1"):
        Material.of([("a", 1)], CONFIG).sample(1, seed=-1)


@pytest.mark.parametrize(
    "example", ["a fine film", ("a fine film", "positive"), ("a fine film", 1, 0), (None, 1)]
)
def test_an_example_that_is_no_pair_of_text_and_label_is_named(example):
    with pytest.raises(
        DataError, match=r"Example 1: .* where a text, or a pair of texts, and the number of its"
    ):
        Material.of([("a dull film", 0), example], CONFIG)
