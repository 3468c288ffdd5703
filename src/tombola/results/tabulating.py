"""What the scores of a study say, as tidy tables: statistics, paired tests, matching, Pareto frontier."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import load_file

from tombola.errors import TombolaError, UnknownName
from tombola.results.result import Result, Summary
from tombola.results.statistics import holm, mcnemar, paired_t, pareto, sign_flips, spread

if TYPE_CHECKING:
    from tombola.store.store import Store

Cell = dict[str, Any]
AIMS = ("sparsity", "latency", "clean", "out of distribution", "under attack")


@dataclass(frozen=True)
class Point:
    """A variant at one point of the grid: its cells, which differ in nothing but the seed."""

    cells: list[Cell]
    summary: Summary

    @cached_property
    def name(self) -> dict[str, Any]:
        """What tells it from all others."""
        return {"variant": self.summary.variant, **self.summary.axes}

    @cached_property
    def place(self) -> str:
        """What it has in common with the dense model that it is compared with."""
        return json.dumps(self.summary.place, sort_keys=True)

    def meets(self, other: Point) -> bool:
        """Whether a comparison is fair: the same point of the grid; a dense model meets every ticket of its place."""
        if self.summary.sparsity == 0 or other.summary.sparsity == 0:
            return self.place == other.place
        return self.summary.axes == other.summary.axes


def points(result: Result) -> list[Point]:
    """The points of a result, in its order."""
    return [Point(cells, result.summary(cells)) for cells in result.groups()]


def observations(result: Result) -> list[dict[str, Any]]:
    """The scores, one in each row: what tests and plots of one's own begin with."""
    return [
        {
            **point.name,
            "sparsity": point.summary.sparsity,
            "seed": cell["seed"],
            "on": on,
            "metric": metric,
            **score,
        }
        for point in points(result)
        for cell in point.cells
        for on, metrics in cell["scores"].items()
        for metric, score in metrics.items()
    ]


def table(result: Result) -> list[dict[str, Any]]:
    """A row for each variant, grid point, data set and metric: statistics over seeds, decisions, and a test.

    `frontier`: no other row of its place beats it in every aim. `matching`: how a ticket stands to the dense model.
    `p`: Holm's, for the paired t test against `against`: the first variant that it meets, which is the dense model
    where recipes name that first.
    """
    best = {json.dumps(row["point"]) for row in frontier(result)}
    tests = {on: _against_first(result, on) for on in result.targets}
    dense = {point.place: point.summary for point in points(result) if point.summary.sparsity == 0}
    families = {on: result.family(on) for on in result.targets}
    rows = []
    for point in points(result):
        name = json.dumps(point.name)
        for on, metrics in point.cells[0]["scores"].items():
            headline, *_ = metrics
            test = tests[on].get(name)
            decided = {
                "matching": _matching(point.summary, dense.get(point.place), on),
                "against": test.first["variant"] if test else None,
                "difference": -test.mean if test else None,
                "p": test.holm if test else None,
            }
            for metric in metrics:
                rows.append(
                    {
                        **point.name,
                        "sparsity": point.summary.sparsity,
                        "on": on,
                        "family": families[on],
                        "metric": metric,
                        **spread([cell["scores"][on][metric] for cell in point.cells]),
                        "frontier": name in best,
                        **(decided if metric == headline else dict.fromkeys(decided)),
                    }
                )
    return rows


@dataclass(frozen=True)
class Difference:
    """Two variants at one point of the grid, seed by seed: `first` less `second` in the headline metric."""

    first: dict[str, Any]
    second: dict[str, Any]
    on: str
    seeds: int
    mean: float
    t: float | None
    """Two-sided p of the paired t test; needs two seeds."""
    flips: float | None
    """Two-sided p of the sign-flip permutation test, which assumes nothing of how differences are distributed."""
    mcnemar: float | None
    """Two-sided exact p of McNemar's test on the examples of all seeds, where predictions are in the store."""
    holm: float | None = None
    """The p of t (of McNemar with one seed), corrected for the number of pairs by Holm's method."""


def differences(result: Result, on: str, store: Store | None = None) -> list[Difference]:
    """Every two variants that meet and have seeds in common. McNemar's test needs the store's predictions."""
    if on not in result.targets:
        raise UnknownName("data set of this study", on, result.targets)
    places: dict[str, list[Point]] = {}
    for point in points(result):
        places.setdefault(point.place, []).append(point)
    found = []
    for here in places.values():
        for first, second in itertools.combinations(here, 2):
            pairs = list(_by_seed(first, second, on)) if first.meets(second) else []
            if pairs:
                change = np.array([_headline(a, on) - _headline(b, on) for a, b in pairs])
                examples = _examples(pairs, on, store) if store else None
                tests = paired_t(change), sign_flips(change), examples
                found.append(
                    Difference(first.name, second.name, on, len(pairs), float(change.mean()), *tests)
                )
    values = [one.t if one.t is not None else one.mcnemar for one in found]
    tested = [(index, value) for index, value in enumerate(values) if value is not None]
    corrected = holm([value for _, value in tested])
    for (index, _), value in zip(tested, corrected, strict=True):
        found[index] = replace(found[index], holm=value)
    return found


def frontier(result: Result, aims: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The points that no other of the same model, task and data beats in every aim.

    The aims: sparsity, latency (milliseconds, of tickets that were shrunk and timed), and the mean score over the
    data sets of a family. By default all but latency that every point has.
    """
    for aim in aims or ():
        if aim not in AIMS:
            raise UnknownName("aim", aim, AIMS)
    reached = _reached(result)
    chosen = aims or [aim for aim in AIMS if aim != "latency" and all(aim in own for _, own in reached)]
    for aim in chosen:
        if not any(aim in own for _, own in reached):
            raise TombolaError(
                f"nothing in this study has the aim {aim!r}: evaluate, attack or measure it first"
            )
    complete = [(point, own) for point, own in reached if all(aim in own for aim in chosen)]
    best = []
    for place in dict.fromkeys(point.place for point, _ in complete):
        here = [(point, own) for point, own in complete if point.place == place]
        goals = [[-own[aim] if aim == "latency" else own[aim] for aim in chosen] for _, own in here]
        best += [one for one, kept in zip(here, pareto(np.array(goals)), strict=True) if kept]
    return [{"point": point.name, **{aim: own[aim] for aim in chosen}} for point, own in best]


def _reached(result: Result) -> list[tuple[Point, dict[str, float]]]:
    """How far every point has come in every aim that is known of it."""
    from tombola.report.speeds import read_speeds

    families = {on: result.family(on) for on in result.targets}
    found = []
    for point, speed in zip(points(result), read_speeds(result), strict=True):
        means: dict[str, list[float]] = {}
        for on, score in point.summary.scores.items():
            means.setdefault(families[on], []).append(score["mean"])
        own = {"sparsity": point.summary.sparsity} | {
            name: float(np.mean(each)) for name, each in means.items()
        }
        found.append((point, own | ({"latency": speed.milliseconds} if speed else {})))
    return found


def _headline(cell: Cell, on: str) -> float:
    return next(iter(cell["scores"][on].values()))["value"]


def _by_seed(first: Point, second: Point, on: str) -> Iterator[tuple[Cell, Cell]]:
    others = {cell["seed"]: cell for cell in second.cells if on in cell["scores"]}
    for cell in first.cells:
        if on in cell["scores"] and cell["seed"] in others:
            yield cell, others[cell["seed"]]


def _examples(pairs: Sequence[tuple[Cell, Cell]], on: str, store: Store) -> float | None:
    """McNemar's p over the examples of all seeds, or nothing where a prediction is not a class."""
    right = [(_correct(a, on, store), _correct(b, on, store)) for a, b in pairs]
    known = [(a, b) for a, b in right if a is not None and b is not None]
    if len(known) < len(pairs):
        return None
    return mcnemar(*(np.concatenate(side) for side in zip(*known, strict=True)))


def _correct(cell: Cell, on: str, store: Store) -> np.ndarray | None:
    """Which examples a model classified rightly."""
    from tombola.pipeline.stages.evaluate import PREDICTIONS
    from tombola.pipeline.stages.sources import load_split

    key = cell["stages"].get("evaluations", {}).get(on)
    file = store.root / "evaluate" / str(key) / PREDICTIONS
    if key is None or not file.is_file():
        return None
    split = load_split(cell["data"][on])
    logits = load_file(file)["predictions"]
    if split.task.kind != "classification" or logits.shape != (
        len(split.labels),
        len(split.task.labels or ()),
    ):
        return None
    return logits.argmax(axis=1) == np.asarray(split.labels)


def _against_first(result: Result, on: str) -> dict[str, Difference]:
    tests: dict[str, Difference] = {}
    for one in differences(result, on):
        tests.setdefault(json.dumps(one.second), one)
    return tests


def _matching(summary: Summary, dense: Summary | None, on: str) -> str | None:
    """How a ticket stands to the dense model: not below it (strict), within its deviation, or below."""
    if dense is None or summary.sparsity == 0 or on not in dense.scores:
        return None
    level, slack, mean = dense.scores[on]["mean"], dense.scores[on]["spread"], summary.scores[on]["mean"]
    return "strict" if mean >= level else "within" if mean >= level - slack else "below"
