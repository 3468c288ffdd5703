"""Constraints that come late leave the texts that they would leave if they came first."""

from collections import Counter
from random import Random
from zlib import crc32

from tests.attacks.toys import BagOfWords, SharedWords, material, resources
from tombola.attacks import Tools
from tombola.attacks.textfooler import TextFooler
from tombola.attacks.trial import attack_examples, oracles_of

WORDS = [
    "good",
    "fine",
    "warm",
    "cold",
    "nice",
    "plot",
    "film",
    "scene",
    "actor",
    "story",
    "bright",
    "dull",
    "slow",
]
NO_LIMIT = 10**9


class Whims(SharedWords):
    """An encoder whose answers depend on the two texts alone, and look like chance; many of them are equal."""

    def __call__(self, pairs):
        self.rows += len(pairs)
        return [1 - crc32(f"{a}|{b}".encode()) % 16 / 64 for a, b in pairs]


def world(seed):
    """Texts of random words, each with random neighbours and a random weight; weights are coarse, so scores tie."""
    chance = Random(seed)
    table = {
        word: {other: 0.5 + chance.random() / 2 for other in chance.sample(WORDS, 6) if other != word}
        for word in WORDS
    }
    model = BagOfWords({word: chance.randint(-1, 6) / 4 for word in WORDS})
    examples = [(" ".join(chance.choices(WORDS, k=chance.randint(3, 14))), 1) for _ in range(40)]
    return table, model, examples


def test_textfooler_ends_at_the_same_texts_whether_similarity_is_asked_first_or_last():
    attack, kinds, rows = TextFooler(window=4, min_similarity=0.8), Counter(), Counter()
    for seed in range(8):
        table, model, examples = world(seed)
        found = {}
        for budget in (None, NO_LIMIT):
            encoder = Whims()
            tools = Tools(resources(table, encoder), Random(0))
            oracles = oracles_of(model, tools.resources)
            trials = attack_examples(attack, material(examples), range(40), oracles, tools, budget=budget)
            found[budget] = {one.index: (one.changes, one.result_type, one.similarity) for one in trials}
            rows[budget] += encoder.rows
        assert found[None] == found[NO_LIMIT]
        kinds.update(kind for _, kind, _ in found[None].values())
    assert min(kinds["Successful"], kinds["Failed"]) >= 20
    assert rows[None] < 0.6 * rows[NO_LIMIT]


def test_with_limited_queries_similarity_comes_first_as_published():
    table, model, examples = world(0)
    tools = Tools(resources(table, Whims()), Random(0))
    strict = TextFooler(window=4, min_similarity=1.0)
    for budget in (None, NO_LIMIT):
        model.asked.clear()
        list(
            attack_examples(
                strict, material(examples), [0, 1], oracles_of(model, tools.resources), tools, budget=budget
            )
        )
        if budget is None:
            without_limit = len(model.asked)
    assert len(model.asked) < without_limit
