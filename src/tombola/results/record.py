"""The record of a run: typed, versioned and validated on reading."""

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
"""Increase it when the meaning of a field changes: records of other formats are rejected."""

UNDER_ATTACK = "under attack"
"""The metric of a score under attack."""


class Record(BaseModel):
    """Base class of the parts of a result; rejects unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


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
        mask: The mask in numbers; None for a dense model.
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


class Estimate(Record):
    """A score over seeds, with its spread and interval as shown in tables, reports and files.

    Attributes:
        mean: Mean over seeds.
        std: Standard deviation over seeds; None for one seed.
        stderr: Standard error of a single run's score, averaged over seeds.
        low: Lower end of the 95 % interval: Student's t over seeds; for one run, or if all seeds score the same,
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
        """The standard error of the mean over seeds, or of one run if there is no spread over seeds."""
        return self.std / self.seeds**0.5 if self.std else self.stderr

    @property
    def tolerance(self) -> float:
        """How far below this score another one still counts as equal: the spread, or the standard error if it is 0."""
        return self.std or self.stderr


class Matching(Record):
    """The sparsest ticket of a variant that is as good as the dense model. (BERT-Tickets, section 3)

    Attributes:
        variant: The tickets' variant.
        baseline_key: The settings they share with the dense model: model, task, data, training.
        dense: The variant of the dense model; there may be several.
        within: Sparsity of the sparsest ticket at most one `tolerance` below the dense mean, if any.
        strict: Sparsity of the sparsest ticket not below the dense mean, if any.
        speedup: Speed-up of the ticket `within` over dense, by batch size, if measured.
        note: What makes the decision doubtful or impossible.
    """

    variant: str
    baseline_key: dict[str, Any]
    dense: str
    within: float | None
    strict: float | None
    speedup: dict[int, Speedup] = {}
    note: str | None = None


class PhasePoint(Record):
    """The tickets of one size: `sparsity` as in the recipe, `remaining` the share of all parameters left.

    `random` is over all random masks of the size, each with all seeds.
    """

    sparsity: float
    remaining: float
    winning: Estimate
    random: Estimate | None = None
    losing: Estimate | None = None
    phase: Literal["I", "II", "III"] | None = None


class SuperTicket(Record):
    """The winning ticket that is best on the data used for the choice, with its score on other data.

    A sparsity of 0 is the dense model, the winning ticket that keeps everything. `tickets` are paths relative to the
    result's folder, one for each seed, if tickets were written.
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

    `axes` distinguishes the curves of a grid: the task, settings of the search, the draw and the retraining.
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
        sources: The tasks of the masks: the rows.
        targets: The tasks trained under them: the columns.
        on: The data set of the scores.
        metric: The headline metric; empty if targets have different ones.
        difference: Mean score under the source's mask − mean dense score; None if a cell is missing.
        at_least_own: For each source, the number of targets on which its mask is at least as good as the target's own.
        compared: For each source, the number of targets with an own mask to compare with.
    """

    sources: list[str]
    targets: list[str]
    on: str
    metric: str
    difference: list[list[float | None]]
    at_least_own: dict[str, int]
    compared: dict[str, int]


class SharingRow(Record):
    """A score of a task that was trained together with others, without and with tickets; or the average over tasks.

    A task may have several rows, one for each data set (`on`) and metric; the average is over the means of the tasks.
    `difference` pairs trainings with the same seed; `remaining` is the share of the encoder's parameters, embeddings
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
    """The content of `results.json`.

    The fields after `failures` are derived from the cells when the result is saved, for readers of the JSON.

    Attributes:
        recipe_hash: A hash of the recipe, which the run's folder belongs to.
        notes: What to know before trusting the numbers.
        matching: By data set or attack, how sparse each variant can be and still match the dense model.
        phases: The phase transitions of structured tickets.
        transfer: Scores of tasks trained under the masks of others.
        sharing: By data set, tasks that share an encoder, without and with tickets.
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
    notes: list[str] = []
    matching: dict[str, list[Matching]] = {}
    phases: list[Phases] = []
    transfer: Transfer | None = None
    sharing: dict[str, list[SharingRow]] = {}
    checksum: str = ""
