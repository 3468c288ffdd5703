"""What came out of a run: every cell's scores, and their statistics over seeds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tombola.errors import TombolaError

RESULTS = "results.json"
UNDER_ATTACK = "under attack"
"""The metric of a score that an attack left."""

Family = Literal["clean", "out of distribution", "under attack"]


@dataclass(frozen=True)
class Summary:
    """One row of the table: a variant at one point of the grid, over its seeds."""

    variant: str
    axes: dict[str, Any]
    seeds: int
    sparsity: float
    """Of the prunable weights; 0 for a dense model."""
    scores: dict[str, dict[str, float]]
    """By data set: mean, standard deviation over seeds (or the one run's standard error), interval."""
    parameters: int | None = None
    """Of the whole model, where that is known."""
    left: int | None = None
    """Those of them that the mask keeps."""

    @property
    def place(self) -> dict[str, Any]:
        """What a ticket has in common with the dense model that it is compared with: model, task, data, training."""
        own = ("search", "draw", "retrain")
        return {name: value for name, value in self.axes.items() if name.split(".")[0] not in own}


@dataclass(frozen=True)
class Matching:
    """The sparsest ticket of a variant that is as good as the dense model, if there is one.

    `within`: its mean over seeds is at most one standard deviation of the dense model's below the dense
    mean; `strict`: it is not below it at all.
    """

    variant: str
    place: dict[str, Any]
    within: float | None
    strict: float | None
    dense: str = "dense"
    """The variant that it is compared with: there may be several dense ones."""


class Result:
    """The outcome of a run; `save` keeps it as JSON."""

    def __init__(self, content: dict[str, Any], folder: Path) -> None:
        self.content = content
        self.folder = folder

    @classmethod
    def load(cls, path: Path | str) -> Result:
        """Read a result from its folder or its JSON file."""
        path = Path(path)
        file = path / RESULTS if path.is_dir() else path
        if not file.is_file():
            raise TombolaError(f"{path} holds no result: there is no {file.name} in it")
        return cls(json.loads(file.read_text()), file.parent)

    def save(self) -> Path:
        """Write `results.json` whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f"{RESULTS}.partial"
        temporary.write_text(json.dumps(self.content, indent=1, allow_nan=False))
        return temporary.rename(self.folder / RESULTS)

    @property
    def cells(self) -> list[dict[str, Any]]:
        """Every cell: variant, axes, scores, sparsity, where its ticket lies."""
        return self.content["cells"]

    @property
    def targets(self) -> list[str]:
        """The data sets that were evaluated on, in the order of the recipe."""
        return list(dict.fromkeys(on for cell in self.cells for on in cell["scores"]))

    def headline(self, on: str) -> str:
        """The metric that a data set is judged by."""
        return next(next(iter(cell["scores"][on])) for cell in self.cells if on in cell["scores"])

    def family(self, on: str) -> Family:
        """Whether a score is of the task's own data, of other data, or of attacked texts.

        A split of the task with a synthetic bias turned round (`validation+anti`) is other data.
        """
        from tombola.tasks import task_names

        if self.headline(on) == UNDER_ATTACK:
            return "under attack"
        foreign = "/" in on or "+" in on or on.endswith((".yaml", ".yml")) or on in task_names()
        return "out of distribution" if foreign else "clean"

    def groups(self) -> Iterator[list[dict[str, Any]]]:
        """The cells that differ in nothing but the seed."""
        found: dict[str, list[dict[str, Any]]] = {}
        for cell in self.cells:
            axes = {name: value for name, value in cell["axes"].items() if name != "seed"}
            found.setdefault(json.dumps([cell["variant"], axes], sort_keys=True), []).append(cell)
        yield from found.values()

    def summaries(self) -> list[Summary]:
        """The rows of the table: means over seeds with their spread."""
        return [self.summary(group) for group in self.groups()]

    def matching(self, on: str) -> list[Matching]:
        """For each variant, the sparsest ticket that matches the dense model on `on`. (BERT-Tickets, section 3)"""
        rows = [row for row in self.summaries() if on in row.scores]
        found = []
        for dense in (row for row in rows if row.sparsity == 0):
            level, slack = dense.scores[on]["mean"], dense.scores[on]["spread"]
            place = dense.place
            tickets = [row for row in rows if row.sparsity > 0 and row.place == place]
            for variant in dict.fromkeys(row.variant for row in tickets):
                own = [row for row in tickets if row.variant == variant]
                found.append(
                    Matching(
                        variant=variant,
                        place=place,
                        within=_sparsest(row for row in own if row.scores[on]["mean"] >= level - slack),
                        strict=_sparsest(row for row in own if row.scores[on]["mean"] >= level),
                        dense=dense.variant,
                    )
                )
        return found

    def summary(self, cells: list[dict[str, Any]]) -> Summary:
        """One row of the table: cells that differ in nothing but the seed."""
        first = cells[0]
        scores = {
            on: self._spread([next(iter(c["scores"][on].values())) for c in cells]) for on in first["scores"]
        }
        axes = {name: value for name, value in first["axes"].items() if name != "seed"}
        mask = first["mask"]
        if mask is None:
            return Summary(first["variant"], axes, len(cells), 0.0, scores)
        parameters = mask["parameters"]
        left = round(parameters * (1 - mask["total_sparsity"]))
        return Summary(first["variant"], axes, len(cells), mask["weight_sparsity"], scores, parameters, left)

    @staticmethod
    def _spread(scores: list[dict[str, Any]]) -> dict[str, float]:
        from tombola.evaluation.intervals import mean_interval
        from tombola.evaluation.scores import Score

        if len(scores) == 1:
            score = Score.from_dict(scores[0])
            low, high = score.interval()
            return {"mean": score.value, "spread": score.stderr, "low": low, "high": high}
        mean, std, low, high = mean_interval([score["value"] for score in scores])
        return {"mean": mean, "spread": std, "low": low, "high": high}


def _sparsest(rows: Iterable[Summary]) -> float | None:
    return max((row.sparsity for row in rows), default=None)
