"""The decisions of a result: estimates over seeds, matching tickets, phases, transfer, sharing and claims."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tombola.shrink.sizes import Speedup


class Record(BaseModel):
    """Base class of the parts of a result; rejects unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Estimate(Record):
    """A score over seeds, with its spread and interval as shown in tables, reports and files.

    Attributes:
        mean: Mean over seeds.
        std: Standard deviation over seeds; None for one seed.
        stderr: Standard error of a single run's score, averaged over seeds.
        low: Lower end of the 95 % interval: Student's t over seeds; for one run, or if all seeds score the same,
            that of `Score.interval`: Wilson's for a share, Fisher's for a correlation, else normal.
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
        note: Why the decision is doubtful or impossible.
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
    """The score of each target task under the mask of each source task, minus that of the dense model.

    Attributes:
        sources: The tasks of the masks: the rows.
        targets: The tasks trained under them: the columns.
        on: The data set of the scores.
        metric: The headline metric; empty if targets have different ones.
        difference: Mean score under the source's mask − mean dense score; None if a cell is missing.
        at_least_own: For each source, the number of targets on which its mask is at least as good as the target's own.
        compared: For each source, the number of targets that also have a mask of their own.
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

    Attributes:
        task: The task, or `average`.
        metric: The metric; None for an average of different ones.
        on: The data set; None for the average.
        without: The score without tickets.
        shared: The score with tickets.
        difference: With tickets − without, between trainings with the same seed.
        remaining: The share of the encoder's parameters, embeddings included, that the task's mask keeps.
        random: The score with random tickets of the same size, if the recipe's `controls` include `random`.
        random_difference: With tickets − with random tickets, between trainings with the same seed.
        alone: The score of the task's single fine-tuning, if the recipe's `controls` include `alone`.
    """

    task: str
    metric: str | None
    on: str | None = None
    without: Estimate
    shared: Estimate
    difference: Estimate
    remaining: float
    random: Estimate | None = None
    random_difference: Estimate | None = None
    alone: Estimate | None = None


Verdict = Literal["holds", "not shown", "does not hold", "not tested"]


class Judgement(Record):
    """The outcome of a claim that one variant is better than another, at one grid point.

    Attributes:
        claim: The claim's name.
        variant: The variant that is claimed to be better.
        over: The variant that it is compared with.
        axes: The grid point.
        on: The data set or attack.
        metric: The headline metric; empty if nothing was compared.
        by: The smallest gain that counts, in points if the metric is a share; negative if a loss is allowed.
        difference: `variant` − `over`, paired by seed where possible; None if scores of either are missing.
        verdict: Whether the 95 % interval of the gain lies above `by`, around it or below it.
    """

    claim: str
    variant: str
    over: str
    axes: dict[str, Any] = {}
    on: str
    metric: str = ""
    by: float = 0.0
    difference: Estimate | None = None
    verdict: Verdict
