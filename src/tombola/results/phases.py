"""The phase transition of structured tickets, and the super ticket of a task. (Super Tickets, sections 3 and 5)

Phase I: the winning ticket is as good as the dense model. II: it is below. III: it has collapsed: it is below by
more than the dense model's spread, and no longer above a random ticket of its size by more than that one's.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from tombola.errors import TombolaError
from tombola.recipe.grid import expand
from tombola.recipe.recipe import Recipe
from tombola.results.result import Result, Summary
from tombola.search.importance import Importance
from tombola.tasks.targets import find_target

ORDERS = ("winning", "random", "losing")

Place = Mapping[str, Any]
"""What tells one set of curves of a grid from another: axes such as the task, settings of the search."""


@dataclass(frozen=True)
class _Row:
    """One row of the result with what the recipe says of it."""

    order: str | None
    """None for a dense model."""
    sparsity: float
    remaining: float
    place: Place
    summary: Summary
    cells: list[dict[str, Any]]
    task: str

    def belongs(self, place: Place) -> bool:
        """Whether it stands there; a dense model stands beside the tickets of every search."""
        return self.place == place or (self.order is None and self.place.items() <= place.items())

    def score(self, on: str) -> dict[str, float]:
        return {**self.summary.scores[on], "seeds": self.summary.seeds}


@dataclass(frozen=True)
class SuperTicket:
    """The winning ticket that is best on the split it was chosen on, with what it scores on another."""

    sparsity: float
    """The recipe's, of heads; 0 is the dense model, which is the winning ticket that keeps everything."""
    remaining: float
    chosen_on: str
    chosen: dict[str, float]
    reported_on: str
    reported: dict[str, float]
    tickets: list[str]
    """One folder below the result's for each seed, where tickets were written."""


def places(result: Result) -> list[Place]:
    """Where the result has both a dense model and winning tickets: one curve each; empty for any other result."""
    rows = list(_rows(result))
    dense = [row for row in rows if row.order is None]
    found: list[Place] = []
    for row in rows:
        if row.order == "winning" and row.place not in found and any(one.belongs(row.place) for one in dense):
            found.append(row.place)
    return found


def phases(result: Result, on: str | None = None, place: Place | None = None) -> dict[str, Any] | None:
    """The curves of winning, random and losing tickets and their phases, for JSON; None if there are none.

    {"on", "metric", "place", "dense": score, "points": [{"sparsity", "remaining", "winning": score,
    "random": score or None, "losing": score or None, "phase": "I" | "II" | "III"}], "super_ticket": {...} or None}

    Points come densest first; `remaining` is the share of all the model's parameters that is left; a score is
    {"mean", "spread", "low", "high", "seeds"}. `on` is the second data set of the recipe, or its only one; the
    super ticket is chosen on the first. `place` is one of `places`, by default the first.
    """
    found = places(result)
    if not found:
        return None
    place = found[0] if place is None else place
    choose_on, report_on = (*result.targets, *result.targets)[:2]
    on = on or report_on
    rows = [row for row in _rows(result) if row.belongs(place) and on in row.summary.scores]
    dense = next(row.score(on) for row in rows if row.order is None)
    points = []
    for row in sorted((row for row in rows if row.order == "winning"), key=lambda row: row.sparsity):
        scores = {
            order: next((r.score(on) for r in rows if (r.order, r.sparsity) == (order, row.sparsity)), None)
            for order in ORDERS
        }
        points.append(
            {
                "sparsity": row.sparsity,
                "remaining": row.remaining,
                **scores,
                "phase": _phase(dense, row.score(on), scores["random"]),
            }
        )
    best = super_ticket(result, choose_on, report_on, place) if choose_on != report_on else None
    return {
        "on": on,
        "metric": result.headline(on),
        "place": dict(place),
        "dense": dense,
        "points": points,
        "super_ticket": None if best is None else vars(best),
    }


def super_ticket(
    result: Result,
    choose_on: str,
    report_on: str,
    place: Place | None = None,
    *,
    same_split: bool = False,
) -> SuperTicket:
    """The winning ticket with the best mean on `choose_on` (of equal ones the smallest), scored on `report_on`.

    Published numbers were chosen by hand on the split that they report, which flatters the best of many;
    that is refused unless `same_split` asks for it.
    """
    found = places(result)
    if not found:
        raise TombolaError("a super ticket is chosen among winning tickets and the dense model: run both")
    place = found[0] if place is None else place
    rows = [row for row in _rows(result) if row.belongs(place) and row.order in (None, "winning")]
    for on in (choose_on, report_on):
        if any(on not in row.summary.scores for row in rows):
            raise TombolaError(
                f"not every ticket was evaluated on {on!r}: add it to evaluate.on "
                f"(evaluated: {', '.join(result.targets)})"
            )
    task = rows[0].task
    if not same_split and find_target(choose_on, task) == find_target(report_on, task):
        raise TombolaError(
            f"the super ticket would be chosen on {choose_on!r}, the split that it is reported on: evaluate on a "
            "second split and choose there, or say same_split=True"
        )
    best = max(rows, key=lambda row: (row.summary.scores[choose_on]["mean"], row.sparsity))
    return SuperTicket(
        sparsity=best.sparsity,
        remaining=best.remaining,
        chosen_on=choose_on,
        chosen=best.score(choose_on),
        reported_on=report_on,
        reported=best.score(report_on),
        tickets=[cell["ticket"] for cell in best.cells if cell.get("ticket")],
    )


def phase_table(result: Result, on: str | None = None, place: Place | None = None) -> Table:
    """Remaining weights down, the three kinds of ticket across, and the phase of each row."""
    found = phases(result, on, place)
    if found is None:
        raise TombolaError("no phases: the result needs a dense model and tickets by importance")
    where = "".join(f", {axis} {value}" for axis, value in found["place"].items())
    table = Table(
        title=f"phase transition on {found['on']} ({found['metric']}){where}",
        caption=_caption(found),
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("sparsity", justify="right")
    table.add_column("remaining\nweights", justify="right")
    for order in ORDERS:
        table.add_column(order, justify="right")
    table.add_column("phase", justify="center")
    table.add_row("dense", "100.0%", _written(found["dense"]))
    for point in found["points"]:
        scores = [_written(point[order]) for order in ORDERS]
        table.add_row(f"{point['sparsity']:.0%}", f"{point['remaining']:.1%}", *scores, point["phase"])
    return table


def _caption(found: Mapping[str, Any]) -> str:
    legend = (
        "I: not below dense; II: below; III: by more than dense's spread, and within the spread of random"
    )
    best = found["super_ticket"]
    if best is None:
        return legend
    return (
        f"{legend}\nsuper ticket, chosen on {best['chosen_on']}: {best['sparsity']:.0%} "
        f"({best['remaining']:.1%} of weights), {_written(best['reported'])} on {best['reported_on']}"
    )


def _written(score: Mapping[str, float] | None) -> str:
    return f"{score['mean']:.1%} ± {score['spread'] * 100:.1f}" if score else ""


def _phase(
    dense: Mapping[str, float], winning: Mapping[str, float], random: Mapping[str, float] | None
) -> str:
    if winning["mean"] >= dense["mean"]:
        return "I"
    fallen = winning["mean"] < dense["mean"] - dense["spread"]
    collapsed = random is not None and winning["mean"] <= random["mean"] + random["spread"]
    return "III" if fallen and collapsed else "II"


def _rows(result: Result) -> Iterator[_Row]:
    """The rows that are dense or drawn by importance; tickets that a control has damaged are neither."""
    recipes = {_key(cell.variant, cell.axes): cell.recipe for cell in expand(result.content["recipe"])}
    for cells, summary in zip(result.groups(), result.summaries(), strict=True):
        recipe = recipes[_key(cells[0]["variant"], cells[0]["axes"])]
        search = recipe.search
        place = {
            axis: value
            for axis, value in summary.axes.items()
            if axis.split(".")[0] not in ("draw", "search")
        }
        if search is None:
            yield _Row(None, 0.0, 1.0, place, summary, cells, recipe.task)
        elif isinstance(search, Importance) and not _damaged(recipe):
            said = search.model_copy(update={"order": "winning"}).canonical()
            place |= {f"search.{name}": value for name, value in said.items() if name != "method"}
            left = 1 - cells[0]["mask"]["total_sparsity"]
            yield _Row(search.order, recipe.draw.sparsity, left, place, summary, cells, recipe.task)


def _damaged(recipe: Recipe) -> bool:
    return recipe.draw.perturb > 0 or (recipe.retrain is not None and recipe.retrain.control is not None)


def _key(variant: str, axes: Mapping[str, Any]) -> str:
    return json.dumps([variant, dict(axes)], sort_keys=True)
