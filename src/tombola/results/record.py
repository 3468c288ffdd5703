"""The record of a run: typed, versioned, and checked when it is read."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from tombola.evaluation.scores import Score
from tombola.foundations.hardware import Precision
from tombola.pipeline.stages.attack import Attacked
from tombola.pipeline.stages.base import Drawn
from tombola.pipeline.stages.fit import Fitted
from tombola.pipeline.stages.measure import Measured
from tombola.pipeline.stages.train import Frozen
from tombola.shrink.sizes import Speedup

FORMAT: Final = 2
"""Raise it when the meaning of a field changes: a record of another format is refused."""

UNDER_ATTACK = "under attack"
"""The metric of a score that an attack left."""


class Record(BaseModel):
    """A part of a result: refuses fields that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class CellStages(Record):
    """The names (`kind/key`) of the stages behind a cell; the store opens them."""

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
    """The step whose model was kept, and the score that it was chosen by."""

    step: int
    epoch: float
    on: str
    score: Score


class CellResult(Record):
    """What came out of one cell of the grid.

    Attributes:
        variant: The recipe's variant that the cell belongs to.
        axes: Its value on every axis of the grid.
        recipe: The recipe that gives this one cell again.
        scores: By data set and metric, the headline first. An attack counts as a data set with one metric.
        constants: By data set, the headline score of the best constant answer: what a model must beat to have
            learned something.
        curves: For each attack, its figures on the model of every epoch.
        course: By data set, scores while the model was trained, where `evaluate.every` asks for them.
        chosen: The step whose model was kept, where `evaluate.best` chooses it; None keeps the last.
        mask: The mask in numbers; None for a dense model.
        fitted: What the draw's target asked for, and what the mask comes to, where the draw has a target.
        ticket: Where its ticket lies, below the result's folder.
        model: Where the model of a dense cell lies, below the result's folder.
        notes: Remarks of its evaluations, such as doubts about the order of labels.
        seconds: Time of all of its stages, shared ones included.
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


class Estimate(Record):
    """A score over seeds: the one definition of its spread and interval in tables, reports and files.

    Attributes:
        mean: Mean over seeds.
        std: Standard deviation over seeds; None for one seed.
        stderr: Standard error of one run's score, a mean over seeds.
        low: Lower end of the 95 % interval: Student's t over seeds; of one run, or of seeds that all score the same,
            Wilson's for a share and normal for anything else.
        high: Upper end.
        seeds: Number of seeds.
    """

    mean: float
    std: float | None
    stderr: float
    low: float
    high: float
    seeds: int

    @property
    def spread(self) -> float:
        """The number after ±: the standard deviation over seeds, or the standard error of a single run."""
        return self.stderr if self.std is None else self.std

    @property
    def stderr_of_mean(self) -> float:
        """The standard error of the mean: of one run, or over seeds where these differ."""
        return self.std / self.seeds**0.5 if self.std else self.stderr

    @property
    def tolerance(self) -> float:
        """How far below this score another one still counts as equal: the spread, if there is any."""
        return self.std or self.stderr


class Matching(Record):
    """The sparsest ticket of a variant that is as good as the dense model. (BERT-Tickets, section 3)

    Attributes:
        variant: The tickets' variant.
        baseline_key: What they have in common with the dense model: model, task, data, training.
        dense: The variant of the dense model; there may be several dense ones.
        within: Sparsity of the sparsest ticket at most one `tolerance` below the dense mean, if there is one.
        strict: Sparsity of the sparsest ticket that is not below the dense mean, if there is one.
        speedup: How much faster than dense the ticket `within` is, by batch size, where it was measured.
        note: What makes the decision doubtful, or impossible.
    """

    variant: str
    baseline_key: dict[str, Any]
    dense: str
    within: float | None
    strict: float | None
    speedup: dict[int, Speedup] = {}
    note: str | None = None


class PhasePoint(Record):
    """The tickets of one size: `sparsity` as in the recipe, `remaining` the share of all parameters that is left."""

    sparsity: float
    remaining: float
    winning: Estimate
    random: Estimate | None = None
    losing: Estimate | None = None
    phase: Literal["I", "II", "III"] | None = None


class SuperTicket(Record):
    """The winning ticket that is best on the data it was chosen on, with its score on other data.

    A sparsity of 0 is the dense model, the winning ticket that keeps everything. `tickets` are folders below the
    result's, one for each seed, where tickets were written.
    """

    sparsity: float
    remaining: float
    chosen_on: str
    chosen: Estimate
    reported_on: str
    reported: Estimate
    tickets: list[str] = []


class Phases(Record):
    """Winning, random and losing tickets of one search, densest first, and the phase of each size.

    `axes` tells the curves of a grid apart: the task, the settings of the search.
    """

    on: str
    metric: str
    axes: dict[str, Any]
    dense: Estimate
    points: list[PhasePoint]
    super_ticket: SuperTicket | None = None
    note: str | None = None


class Transfer(Record):
    """How much better or worse than the dense model each target is under the mask of each source.

    Attributes:
        sources: Where masks come from: the rows.
        targets: What was trained under them: the columns.
        on: The data set of the scores.
        difference: Mean over seeds of (score under the source's mask − dense score); None where a cell is missing.
        at_least_own: For each source, the targets on which its mask is at least as good as the target's own.
        compared: For each source, the targets that have a mask of their own to compare with.
    """

    sources: list[str]
    targets: list[str]
    on: str
    metric: str
    difference: list[list[float | None]]
    at_least_own: dict[str, int]
    compared: dict[str, int]


class SharingRow(Record):
    """A score of a task, or the average over tasks, trained together with the others: without and with tickets.

    A task may have several rows, one for each data set (`on`) and metric; the average takes their mean first.
    `difference` is of trainings with the same seed; `remaining` is the share of the encoder's parameters, embeddings
    included, that the task's mask keeps.
    """

    task: str
    metric: str | None
    on: str | None = None
    without: Estimate
    shared: Estimate
    difference: Estimate
    remaining: float


class RunRecord(Record):
    """Everything that a result says, as `results.json` keeps it.

    What comes after `failures` is derived from the cells when the result is saved, for readers of the JSON.

    Attributes:
        recipe_hash: What tells the recipe from others: its folder belongs to it.
        notes: What a reader should know before believing the numbers.
        matching: By data set or attack, how sparse each variant can be and still match the dense model.
        phases: The phase transitions of structured tickets.
        transfer: Masks of some tasks under the training of others.
        sharing: By data set, tasks that share an encoder, without and with tickets.
        verdict: What a compression came to, in a sentence.
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
    notes: list[str] = []
    matching: dict[str, list[Matching]] = {}
    phases: list[Phases] = []
    transfer: Transfer | None = None
    sharing: dict[str, list[SharingRow]] = {}
    checksum: str = ""
