"""`tombola.transfer`: masks of some tasks under the training of others. (BERT-Tickets, section 4)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tombola.errors import RecipeError
from tombola.recipe import Raw, load_recipe
from tombola.results import Result
from tombola.running import run
from tombola.shipped import find_recipe

DENSE, TRANSFERRED = "dense", "transferred"


@dataclass(frozen=True)
class Transfer:
    """How much better or worse than the dense model each target is under each source's mask."""

    sources: list[str]
    targets: list[str]
    on: str
    difference: list[list[float]]
    """Mean over seeds of (score under the source's mask − dense score); a row per source."""
    at_least_own: dict[str, int]
    """For each source, the targets on which its mask is at least as good as the target's own mask."""
    compared: dict[str, int]
    """For each source, the targets that have a mask of their own to compare with."""


def transfer(
    recipe: Path | str | Mapping[str, Any],
    overrides: Sequence[str] = (),
    *,
    sources: Sequence[str] = (),
    targets: Sequence[str] = (),
    **options: Any,
) -> tuple[Result, Transfer]:
    """Search a mask on every source, train every target under each of them, and compare with dense.

    Where the recipe says it all (`task` a list of targets, `search.task` a list of sources), nothing else is
    needed. `options` are those of `tombola.run`.
    """
    raw = _grid(load_recipe(find_recipe(recipe), overrides), list(sources), list(targets))
    result = run(raw, **options)
    matrix = transfer_matrix(result, result.targets[0])
    result.content["transfer"] = asdict(matrix)
    result.save()
    return result, matrix


def transfer_matrix(result: Result, on: str) -> Transfer:
    """The matrix of a result whose cells vary over `task` and `search.task`."""
    scores: dict[tuple[str | None, str], float] = {}
    for row in result.summaries():
        source = row.axes.get("search.task") if row.variant != DENSE else None
        scores[source, row.axes["task"]] = row.scores[on]["mean"]
    sources = list(dict.fromkeys(source for source, _ in scores if source is not None))
    targets = list(dict.fromkeys(target for _, target in scores))
    difference = [[scores[source, target] - scores[None, target] for target in targets] for source in sources]
    others = {source: [t for t in targets if t in sources and t != source] for source in sources}
    at_least = {s: sum(scores[s, t] >= scores[t, t] for t in own) for s, own in others.items()}
    return Transfer(sources, targets, on, difference, at_least, {s: len(own) for s, own in others.items()})


def _grid(raw: Raw, sources: list[str], targets: list[str]) -> Raw:
    variants = raw.get("variants") or {}
    search = raw.get("search") or (variants.get(TRANSFERRED) or {}).get("search")
    if not search:
        raise RecipeError("transfer needs a recipe with a search, whose masks are transferred")
    targets = targets or _listed(raw.get("task"))
    sources = sources or _listed(search.get("task")) or targets
    raw = {**raw, "task": targets, "search": {**search, "task": sources}}
    return {**raw, "variants": {DENSE: {"search": None}, TRANSFERRED: {}}}


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value] if value else []
