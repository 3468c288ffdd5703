"""The losses of searches and trainings, read from the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from pydantic import ValidationError

from tombola.errors import TombolaError
from tombola.foundations.paths import inside
from tombola.pipeline.stages.base import LOG
from tombola.pipeline.stages.search import SearchStage
from tombola.report.parts import Curves, Point, Section, Series
from tombola.report.rows import facets, model
from tombola.results.record import CellResult
from tombola.results.result import Result
from tombola.results.summary import Summary
from tombola.store.manifest import read_manifest
from tombola.store.store import Store
from tombola.training.log import TrainLog

POINTS = 50
"""The approximate number of points of a line; neighbours are averaged."""

Losses = list[tuple[float, float]]
"""Steps and losses."""


def losses(result: Result, store: Store) -> Section | None:
    """Return charts of the losses of every row's last training, and of its search if masks are learned.

    Only logs on this machine are read; a model is not downloaded for its log.
    """
    charts = []
    for name, find in (("training", _training), ("search", _search)):
        series = [line for row in result.summaries() if (line := _series(row, store.root, find))]
        if series:
            charts.append(Curves(name, "step", "loss", series, x_format="count", y_format="number"))
    note = (
        "Losses of trainings and mask searches: means over seeds, shaded from the lowest to the highest seed. Losses "
        "of different objectives cannot be compared."
    )
    return Section("Losses", note, charts) if charts else None


def _series(row: Summary, root: Path, find: Callable[[CellResult, Path], Path | None]) -> Series | None:
    folders = [find(cell, root) for cell in row.cells]
    runs = [losses for folder in folders if folder is not None and len(losses := _read(folder)) > 1]
    if not runs:
        return None
    points = []
    for points_of_runs in zip(*runs, strict=False):
        values = [loss for _, loss in points_of_runs]
        points.append(Point(points_of_runs[0][0], fmean(values), min(values), max(values)))
    return Series(model(row), points, facets(row))


def _training(cell: CellResult, root: Path) -> Path | None:
    return inside(root, cell.stages.model)


def _search(cell: CellResult, root: Path) -> Path | None:
    """Return the search whose scores the mask was drawn from."""
    if cell.stages.mask is None:
        return None
    try:
        inputs = read_manifest(inside(root, cell.stages.mask))["stage"].get("inputs", {})
    except (TombolaError, OSError):
        return None
    candidates = (inside(root, f"{SearchStage.kind}/{key}") for key in inputs.values())
    return next((folder for folder in candidates if folder.is_dir()), None)


def _read(folder: Path) -> Losses:
    """Return the loss curve of a log, with neighbours averaged; empty if there is no log."""
    try:
        curve = TrainLog.model_validate_json((folder / LOG).read_bytes()).curve
    except (OSError, ValidationError):
        return []
    size = max(1, len(curve) // POINTS)
    return [
        (group[-1].step, fmean(point.loss for point in group))
        for group in (curve[start : start + size] for start in range(0, len(curve), size))
    ]
