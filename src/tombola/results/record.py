"""The record of a run: typed, versioned and validated on reading."""

from __future__ import annotations

from typing import Any, Final, Literal

from tombola.evaluation.scores import Score
from tombola.foundations.hardware import Precision
from tombola.pipeline.stages.attack import Attacked
from tombola.pipeline.stages.base import Drawn
from tombola.pipeline.stages.fit import Fitted
from tombola.pipeline.stages.measure import Measured
from tombola.pipeline.stages.train import Frozen
from tombola.recipe.claims import Claim
from tombola.results.decisions import Judgement, Matching, Phases, Record, SharingRow, Transfer

FORMAT: Final = 2
"""Increase it when the meaning of a field changes: records of other formats are rejected."""

UNDER_ATTACK = "under attack"
"""The metric of a score under attack."""


class CellStages(Record):
    """The names (`kind/key`) of a cell's stages in the store."""

    model: str
    mask: str | None = None
    evaluations: dict[str, str] = {}
    attacks: dict[str, str] = {}
    measured: str | None = None


class CoursePoint(Record):
    """Scores of the model after a step of its last training, by metric."""

    step: int
    epoch: float
    scores: dict[str, Score]


class ChosenStep(Record):
    """The step whose model was kept, and the score for which it was chosen."""

    step: int
    epoch: float
    on: str
    score: Score


class CellResult(Record):
    """The result of one cell of the grid.

    Attributes:
        variant: The recipe's variant that the cell belongs to.
        axes: The cell's value on every axis of the grid.
        recipe: The recipe that reproduces this cell.
        scores: By data set and metric, the headline first. An attack counts as a data set with one metric.
        constants: By data set, the headline score of the best constant answer, which a model must beat to have
            learned anything.
        curves: For each attack, its figures on the model of every epoch.
        course: By data set, the scores during training, if `evaluate.every` is set.
        chosen: The step whose model was kept, if `evaluate.best` is set; None means the last.
        mask: The statistics of the mask; None for a dense model.
        fitted: The draw's target and the value that the mask reaches, if the draw has a target.
        ticket: The path of the ticket, relative to the result's folder.
        model: The path of a dense cell's model, relative to the result's folder.
        notes: Notes of its evaluations, such as doubts about the order of labels.
        seconds: Time of all its stages, shared ones included.
    """

    variant: str
    axes: dict[str, Any]
    seed: int
    label: str
    precision: Precision
    recipe: dict[str, Any]
    scores: dict[str, dict[str, Score]]
    constants: dict[str, float] = {}
    attacks: dict[str, Attacked] = {}
    curves: dict[str, list[Attacked]] = {}
    course: dict[str, list[CoursePoint]] = {}
    chosen: ChosenStep | None = None
    mask: Drawn | None = None
    fitted: Fitted | None = None
    frozen: Frozen | None = None
    measured: Measured | None = None
    stages: CellStages
    notes: list[str] = []
    seconds: float
    ticket: str | None = None
    model: str | None = None


class StageCounts(Record):
    """The number of stages of a run, and how many of them ran this time."""

    all: int
    run_now: int


class FailureRecord(Record):
    """A failed stage: the reason, the file with its traceback, and the cells that are missing because of it."""

    stage: str
    label: str
    reason: str
    log: str
    cells: list[str]


class RunRecord(Record):
    """The content of `results.json`.

    The fields after `claims` are derived from the cells when the result is saved, for readers of the JSON.

    Attributes:
        recipe_hash: A hash of the recipe, which the run's folder belongs to.
        claims: The recipe's claims by name, with the outcome of each in `judgements`.
        notes: What to know before trusting the numbers.
        matching: By data set or attack, how sparse each variant can be and still match the dense model.
        phases: The phase transitions of structured tickets.
        transfer: Scores of tasks trained under the masks of others.
        sharing: By data set, tasks that share an encoder, without and with tickets, and controls.
        verdict: The outcome of a compression in a sentence.
        date: The day on which the run ended, as YYYY-MM-DD.
    """

    format: Literal[2] = FORMAT
    name: str
    about: str = ""
    verdict: str = ""
    date: str = ""
    recipe: dict[str, Any]
    recipe_hash: str = ""
    versions: dict[str, str]
    machine: dict[str, Any] = {}
    stages: StageCounts
    cells: list[CellResult]
    failures: list[FailureRecord] = []
    claims: dict[str, Claim] = {}
    judgements: list[Judgement] = []
    notes: list[str] = []
    matching: dict[str, list[Matching]] = {}
    phases: list[Phases] = []
    transfer: Transfer | None = None
    sharing: dict[str, list[SharingRow]] = {}
    checksum: str = ""
