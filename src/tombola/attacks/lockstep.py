"""The engine: many attacks advance at once, and their requests are answered in shared batches.

A lane holds one example's generator. All lanes first advance until they wait for the model (requests to other oracles
are answered on the way), then the distinct texts of all lanes are scored in one call. Since an oracle's answer
depends only on its key, each generator sees exactly what it would see on its own.

Queries are counted as in the papers: each text that an example sends to the model is one query, including the first
scoring of the unchanged text; a repeated text is not counted again. The answers of an example are kept until it ends,
so that nothing is computed twice for it and memory does not grow with the run.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar

from tombola.attacks.requests import MODEL, Oracles, Request, Steps

T = TypeVar("T")


class BudgetSpent(Exception):
    """Thrown into an attack whose request exceeds its query budget, with the answers that the budget still paid for."""

    def __init__(self, answers: Sequence[Any] = ()) -> None:
        super().__init__()
        self.answers = list(answers)


@dataclass
class Lane(Generic[T]):
    """One example under attack: its generator, its pending request, and the answers so far."""

    index: int
    steps: Steps[T]
    request: Request | None = None
    known: dict[tuple[str, Hashable], Any] = field(default_factory=dict)
    asked: set[Hashable] = field(default_factory=set)
    outcome: T | None = None

    @property
    def queries(self) -> int:
        """The number of distinct texts that the model scored for the attack."""
        return len(self.asked)

    def unanswered(self, budget: int | None) -> list[Hashable]:
        """Return the keys of the pending request that still need an answer, as far as the budget allows."""
        if self.request is None:
            return []
        oracle, keys, _ = self.request
        distinct = list(dict.fromkeys(keys))
        if oracle == MODEL and budget is not None:
            distinct = [key for key in distinct if key not in self.asked][: budget - self.queries]
        return [key for key in distinct if (oracle, key) not in self.known]

    def advance(self, budget: int | None) -> None:
        """Pass on the answers and run to the next request, or to the end (`request` is then None)."""
        try:
            if self.request is None:
                self.request = next(self.steps)
                return
            try:
                answers = self._answers(budget)
            except BudgetSpent as spent:
                self.request = self.steps.throw(spent)
            else:
                self.request = self.steps.send(answers)
        except StopIteration as end:
            self.request, self.outcome = None, end.value

    def _answers(self, budget: int | None) -> list[Any]:
        assert self.request is not None
        oracle, keys, until = self.request
        answers: list[Any] = []
        for key in keys:
            if oracle == MODEL and key not in self.asked:
                if self.queries == budget:
                    raise BudgetSpent(answers)
                self.asked.add(key)
            answers.append(self.known[oracle, key])
            if until is not None and int(answers[-1].argmax()) != until:
                break
        return answers


def run(
    trials: Iterable[tuple[int, Steps[T]]], oracles: Oracles, *, lanes: int = 128, budget: int | None = None
) -> Iterator[Lane[T]]:
    """Run every (index, generator) to its end, `lanes` at a time, and yield each lane when it ends.

    BudgetSpent is thrown into a generator that requests more than `budget` texts from the model.
    """
    waiting = iter(trials)
    active: list[Lane[T]] = []
    while True:
        for index, steps in islice(waiting, lanes - len(active)):
            lane = Lane(index, steps)
            lane.advance(budget)
            active.append(lane)
        if not active:
            return
        while aside := [lane for lane in active if lane.request and lane.request.oracle != MODEL]:
            _answer(aside, oracles, budget)
        _answer([lane for lane in active if lane.request], oracles, budget)
        yield from (lane for lane in active if lane.request is None)
        active = [lane for lane in active if lane.request]


def _answer(waiting: list[Lane[T]], oracles: Oracles, budget: int | None) -> None:
    """Answer the lanes' requests with one call per oracle, and let the lanes continue."""
    for oracle in dict.fromkeys(lane.request.oracle for lane in waiting if lane.request):
        asking = [lane for lane in waiting if lane.request and lane.request.oracle == oracle]
        keys = list(dict.fromkeys(key for lane in asking for key in lane.unanswered(budget)))
        answers = dict(zip(keys, oracles[oracle](keys), strict=True)) if keys else {}
        for lane in asking:
            lane.known.update(((oracle, key), answers[key]) for key in lane.unanswered(budget))
            lane.advance(budget)
