import numpy as np
import pytest

from tests.attacks.toys import alone
from tombola.attacks.lockstep import BudgetSpent, run
from tombola.attacks.requests import MODEL, SIMILARITY, ask, ask_until, similarity
from tombola.attacks.text import Text


class Length:
    """A model whose label is whether a text has an even number of letters; it remembers its calls."""

    def __init__(self):
        self.calls = []

    def __call__(self, texts):
        self.calls.append(list(texts))
        return np.array([[len(t[0]) % 2, 1 - len(t[0]) % 2] for t in texts], dtype=float)


def texts(*columns):
    return [Text(column) for column in columns]


def test_requests_of_all_lanes_go_in_one_call_and_repeats_are_asked_once():
    model = Length()

    def steps(name):
        first = yield from ask(texts("a", name))
        second = yield from ask(texts("a", "bb"))
        return first[:, 1].tolist() + second[:, 1].tolist()

    lanes = list(run([(0, steps("cc")), (1, steps("ddd"))], {MODEL: model}))
    assert model.calls == [[("a",), ("cc",), ("ddd",)], [("bb",)]]
    assert [(lane.index, lane.outcome, lane.queries) for lane in lanes] == [
        (0, [0, 1, 0, 1], 3),
        (1, [0, 0, 0, 1], 3),
    ]


def test_the_model_is_called_when_every_lane_waits_for_it():
    model, calls = Length(), []

    def encoder(pairs):
        calls.append(list(pairs))
        return [0.5] * len(pairs)

    def steps(rounds, name):
        for i in range(rounds):
            yield from similarity([(name, str(i))])
        yield from ask(texts(name))

    list(
        run([(0, steps(3, "a")), (1, steps(0, "b")), (2, steps(1, "c"))], {MODEL: model, SIMILARITY: encoder})
    )
    assert model.calls == [[("a",), ("b",), ("c",)]]
    assert calls == [[("a", "0"), ("c", "0")], [("a", "1")], [("a", "2")]]


def test_at_most_so_many_lanes_run_and_ended_ones_make_room():
    model = Length()

    def steps(name, rounds):
        for i in range(rounds):
            yield from ask(texts(name * (i + 1)))
        return name

    trials = ((i, steps(name, rounds)) for i, (name, rounds) in enumerate([("a", 3), ("b", 1), ("c", 1)]))
    assert [lane.outcome for lane in run(trials, {MODEL: model}, lanes=2)] == ["b", "c", "a"]
    assert model.calls == [[("a",), ("b",)], [("aa",), ("c",)], [("aaa",)]]


def test_a_sequential_request_pays_up_to_the_first_other_label():
    model = Length()

    def steps():
        seen = yield from ask_until(texts("a", "bbb", "cc", "d", "ee"), label=0)
        again = yield from ask(texts("d"))
        return len(seen), again[0].argmax()

    lane = alone(steps(), {MODEL: model})
    assert lane.outcome == (3, 0)
    assert lane.queries == 4
    assert len(model.calls) == 1


@pytest.mark.parametrize("budget", [1, 2, 3, 4, 5, 6, 7])
def test_a_spent_budget_is_thrown_into_the_attack_and_never_exceeded(budget):
    model = Length()

    def steps():
        told = []
        try:
            for names in (["a"], ["a", "b"], ["c", "d", "e"], ["f"]):
                told += (yield from ask(texts(*names))).tolist()
        except BudgetSpent:
            return "spent", len(told)
        return "done", len(told)

    (lane,) = run([(0, steps())], {MODEL: model}, budget=budget)
    assert lane.queries == min(budget, 6)
    assert sum(map(len, model.calls)) == min(budget, 6)
    assert lane.outcome == {
        1: ("spent", 1),
        2: ("spent", 3),
        3: ("spent", 3),
        4: ("spent", 3),
        5: ("spent", 6),
    }.get(budget, ("done", 7))


def test_an_example_without_words_asks_nothing_and_ends():
    def steps():
        return (yield from ask([])).tolist()

    lane = alone(steps(), {MODEL: Length()})
    assert (lane.outcome, lane.queries) == ([], 0)
