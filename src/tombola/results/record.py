"""The record of a run: typed, versioned, and checked when it is read."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tombola.evaluation.scores import Score
from tombola.foundations.hardware import Precision
from tombola.pipeline.stages.attack import Attacked
from tombola.pipeline.stages.base import Drawn
from tombola.pipeline.stages.measure import Measured
from tombola.pipeline.stages.train import Frozen

FORMAT = 2
"""Raise it when the meaning of a field changes: a record of another format is refused."""


class Record(BaseModel):
    """A part of a result: refuses fields that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CellStages(Record):
    """The names (`kind/key`) of the stages behind a cell; the store opens them."""

    model: str
    mask: str | None = None
    evaluations: dict[str, str] = {}
    attacks: dict[str, str] = {}
    measured: str | None = None


class CellResult(Record):
    """What came out of one cell of the grid.

    Attributes:
        variant: The recipe's variant that the cell belongs to.
        axes: Its value on every axis of the grid.
        recipe: The recipe that gives this one cell again.
        scores: By data set and metric, the headline first. An attack counts as a data set with one metric.
        curves: For each attack, its figures on the model of every epoch.
        mask: The mask in numbers; None for a dense model.
        ticket: Where its ticket lies, below the result's folder.
        seconds: Time of all of its stages, shared ones included.
    """

    variant: str
    axes: dict[str, Any]
    seed: int
    label: str
    precision: Precision
    recipe: dict[str, Any]
    scores: dict[str, dict[str, Score]]
    attacks: dict[str, Attacked] = {}
    curves: dict[str, list[Attacked]] = {}
    mask: Drawn | None = None
    frozen: Frozen | None = None
    measured: Measured | None = None
    stages: CellStages
    seconds: float
    ticket: str | None = None


class StageCounts(Record):
    """How many stages a run has, and how many of them ran now."""

    all: int
    run_now: int


class FailureRecord(Record):
    """A stage that failed: why, the file with its traceback, and the cells that are missing for it."""

    stage: str
    label: str
    reason: str
    log: str
    cells: list[str]


class RunRecord(Record):
    """Everything that a result says, as `results.json` keeps it."""

    format: Literal[2] = FORMAT
    name: str
    about: str = ""
    recipe: dict[str, Any]
    versions: dict[str, str]
    machine: dict[str, Any] = {}
    stages: StageCounts
    cells: list[CellResult]
    failures: list[FailureRecord] = []
