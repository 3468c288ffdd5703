"""The engine's promise: in lock-step every example ends exactly as if it were attacked alone."""

import numpy as np
import pytest

from tests.attacks.toys import material, resources
from tests.tiny import tiny
from tests.words import word_tokenizer
from tombola.attacks import attack, attacks
from tombola.attacks.masked_lm import MaskedLM

CONTENT = ["film", "plot", "good", "bad", "warm", "cold", "actor", "scene", "story"]
CONTENT += ["ending", "fine", "dull", "movie", "tale", "nice", "awful", "player", "act"]
PLAIN = ["the", "a", "is", "was", "and", "of", "it"]


def texts(count, columns=1, seed=0):
    rng = np.random.default_rng(seed)

    def draw():
        return " ".join(rng.choice(CONTENT + PLAIN, size=rng.integers(3, 15)))

    return [tuple(draw() for _ in range(columns)) for _ in range(count)]


@pytest.fixture(scope="module")
def tokenizer():
    return word_tokenizer([" ".join(CONTENT + PLAIN)])


@pytest.fixture
def toys(tokenizer):
    rng = np.random.default_rng(5)
    table = {
        word: {
            str(near): float(cosine)
            for near, cosine in zip(rng.permutation(CONTENT)[:8], rng.uniform(0.4, 1, 8), strict=True)
        }
        for word in CONTENT
    }
    toy = resources(table)
    toy.masked_lm = MaskedLM(tiny("bert", "masked-lm", vocab_size=len(tokenizer), seed=3), tokenizer)
    return toy


def outcome(example):
    return example.perturbed_text.columns, example.perturbed_output, example.num_queries, example.result_type


@pytest.mark.parametrize("name", list(attacks))
@pytest.mark.parametrize(("columns", "labels"), [(1, 2), (2, 4)])
def test_lock_step_equals_one_at_a_time(name, columns, labels, tokenizer, toys):
    model = tiny("bert", vocab_size=len(tokenizer), num_labels=labels, seed=1)
    examples = [(text, i % labels) for i, text in enumerate(texts(16, columns))]
    reports = [
        attack(model, tokenizer, examples, name, resources=toys, max_length=48, lanes=lanes)
        for lanes in (16, 5, 1)
    ]
    together, few, alone = ([outcome(example) for example in report.examples] for report in reports)
    assert together == few == alone
    assert {result for *_, result in alone} > {"Skipped"}
    assert material(examples, labels).texts == [example.original for example in reports[0].examples]


def test_a_subset_is_attacked_as_the_whole_was(tokenizer, toys):
    model = tiny("bert", vocab_size=len(tokenizer), num_labels=2, seed=1)
    examples = [(text, i % 2) for i, text in enumerate(texts(24))]
    whole = attack(model, tokenizer, examples, "deepwordbug", resources=toys)
    part = attack(model, tokenizer, examples, "deepwordbug", resources=toys, n=8)
    chosen = {example.index: outcome(example) for example in part.examples}
    assert len(chosen) == 8
    assert chosen == {e.index: outcome(e) for e in whole.examples if e.index in chosen}
