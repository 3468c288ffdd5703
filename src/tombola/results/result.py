"""The result of a run: the record of every cell, statistics over seeds, and decisions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from tombola.errors import DamagedArtefact, TombolaError
from tombola.foundations.checksums import is_intact, sealed, write_whole
from tombola.results.claims import judge
from tombola.results.decisions import Judgement, Matching, Phases, SharingRow, Transfer
from tombola.results.differences import Difference, differences
from tombola.results.doubts import notes
from tombola.results.export import Rows, frame, latex
from tombola.results.formatting import write_estimate
from tombola.results.frontier import frontier
from tombola.results.matching import match
from tombola.results.phases import find_phases
from tombola.results.record import FORMAT, CellResult, FailureRecord, RunRecord
from tombola.results.rows import observations, tidy_rows
from tombola.results.sharing import share_rows
from tombola.results.summary import Summary, summarise
from tombola.results.transfer import transfer_matrix

if TYPE_CHECKING:
    import pandas

    from tombola.store.store import Store

RESULTS = "results.json"
SHOWN_ROWS = 20
"""The most rows in the `repr` of a result."""

Condition = Literal["clean", "out of distribution", "under attack"]


class Result:
    """The outcome of `run`, `study`, `transfer` or `share`.

    Attributes:
        record: The typed content of `results.json`.
        folder: The folder of `results.json`; the paths of tickets are relative to it.
    """

    def __init__(self, record: RunRecord, folder: Path) -> None:
        self.record = record
        self.folder = folder

    @classmethod
    def load(cls, path: Path | str) -> Result:
        """Load a result from its folder or its JSON file.

        Args:
            path: The folder of a run, or its `results.json`.
        """
        path = Path(path)
        if not path.exists():
            raise TombolaError(f"{path}: there is no such folder; `tombola run` writes runs/NAME")
        file = path / RESULTS if path.is_dir() else path
        if not file.is_file():
            raise TombolaError(f"{path} is not the folder of a run: it contains no {file.name}")
        return cls(_read(file), file.parent)

    def save(self) -> Path:
        """Write `results.json` atomically, with the decisions derived from its cells."""
        self.record = self.record.model_copy(
            update={
                "judgements": self.claims(),
                "notes": self.notes,
                "matching": {on: self.matching(on) for on in self.targets},
                "phases": self.phases(),
                "transfer": self.transfer(),
                "sharing": {on: rows for on in self.datasets if (rows := self.sharing(on))},
            }
        )
        path = self.folder / RESULTS
        write_whole(path, sealed(self.record.model_dump(mode="json", exclude={"checksum"})))
        return path

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.record.name

    @property
    def cells(self) -> list[CellResult]:
        """All cells: variant, axes, scores, mask, and the path of the ticket."""
        return self.record.cells

    @property
    def failures(self) -> list[FailureRecord]:
        """The failed stages: the reason, the path of the log, and the cells that are missing because of it."""
        return self.record.failures

    @cached_property
    def notes(self) -> list[str]:
        """What to know before trusting the numbers, such as models that learned nothing."""
        return notes(self)

    @cached_property
    def targets(self) -> list[str]:
        """The data sets and attacks that cells were scored on, in the order of the recipe."""
        return list(dict.fromkeys(on for cell in self.cells for on in cell.scores))

    @cached_property
    def datasets(self) -> list[str]:
        """The targets that are data sets, not attacks."""
        return [on for on in self.targets if not any(on in cell.attacks for cell in self.cells)]

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks of the cells, by name or path."""
        return list(dict.fromkeys(str(cell.recipe["task"]) for cell in self.cells if "task" in cell.recipe))

    def headline(self, on: str) -> str:
        """Return the metric that decides comparisons on a data set.

        Args:
            on: The data set or attack.
        """
        return next(next(iter(cell.scores[on])) for cell in self.cells if on in cell.scores)

    def condition(self, on: str) -> Condition:
        """Return whether a score is on the task's own data, on other data, or on attacked texts.

        Changed splits, such as `validation+anti` with its reversed bias or `test+typos`, are other data.

        Args:
            on: The data set or attack.
        """
        return self._conditions[on]

    @cached_property
    def _conditions(self) -> dict[str, Condition]:
        from tombola.tasks import task_names

        foreign = set(task_names()) - set(self.tasks)
        conditions: dict[str, Condition] = dict.fromkeys(self.targets, "under attack")
        for on in self.datasets:
            other = on.rpartition("/")[0] not in ("", *self.tasks) or on.endswith((".yaml", ".yml"))
            other = "+" in on or (on not in self.tasks and (other or on in foreign))
            conditions[on] = "out of distribution" if other else "clean"
        return conditions

    @cached_property
    def _summaries(self) -> list[Summary]:
        return summarise(self.cells)

    def summaries(self) -> list[Summary]:
        """Return a row for each variant at each grid point, with statistics over seeds."""
        return list(self._summaries)

    def rows(self) -> list[dict[str, Any]]:
        """Return a tidy table of statistics and decisions for every variant, grid point, data set and metric."""
        return tidy_rows(self)

    def observations(self) -> list[dict[str, Any]]:
        """Return a tidy table of the individual scores."""
        return observations(self)

    def frame(self, rows: Rows | None = None) -> pandas.DataFrame:
        """Return a tidy table as a data frame.

        Args:
            rows: The table; by default `rows()`.
        """
        return frame(self.rows() if rows is None else rows)

    def to_latex(self) -> str:
        """Return the summary as a LaTeX table, which needs the package booktabs."""
        return latex(self)

    def matching(self, on: str | None = None) -> list[Matching]:
        """Return for each variant the sparsest ticket that is as good as the dense model.

        Args:
            on: The data set or attack; by default the first.
        """
        on = on or next(iter(self.targets), None)
        return match(self, on) if on else []

    def claims(self) -> list[Judgement]:
        """Return the verdict on each claim of the recipe at each grid point, with the difference that decides it."""
        return judge(self)

    def differences(self, on: str, store: Store | Path | str | None = None) -> list[Difference]:
        """Run paired tests between all pairs of variants at each grid point.

        Args:
            on: The data set.
            store: The store with the predictions, for McNemar's test; by default as in `run`.
        """
        from tombola.store.store import Store

        return differences(self, on, Store.of(store))

    def frontier(self, aims: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return the rows on the Pareto front, among rows with the same baseline and task.

        Args:
            aims: Some of sparsity, speed-up, clean, out of distribution, under attack.
        """
        return frontier(self, aims)

    def phases(self) -> list[Phases]:
        """Return the phase transitions of tickets drawn by importance; empty for other results."""
        return find_phases(self)

    def transfer(self, on: str | None = None) -> Transfer | None:
        """Return scores under the masks of other tasks minus the dense scores; None for a result without transfer.

        Args:
            on: The data set; by default the first.
        """
        on = on or next(iter(self.datasets), None)
        return transfer_matrix(self, on) if on else None

    def sharing(self, on: str | None = None) -> list[SharingRow]:
        """Return tasks that share an encoder, scored without and with tickets, and controls; empty for other results.

        Args:
            on: The data set; by default the first that has a table.
        """
        tables = (share_rows(self, name) for name in ([on] if on else self.datasets))
        return next((rows for rows in tables if rows), [])

    def __repr__(self) -> str:
        rows = self.summaries()
        seeds = max((row.seeds for row in rows), default=0)
        counts = f"{len(rows)} rows, {seeds} {'seed' if seeds == 1 else 'seeds'}"
        failed = f", {len(self.failures)} failed" if self.failures else ""
        lines = [f"Result {self.name!r}: {counts}{failed} ({self.folder})"]
        for row in rows[:SHOWN_ROWS]:
            scores = (f"{on} {write_estimate(score, row.metrics[on])}" for on, score in row.scores.items())
            lines.append(f"  {row.label}: {', '.join(scores)}")
        return "\n".join([*lines, *(["  …"] if len(rows) > SHOWN_ROWS else [])])


Study = Result
"""The outcome of a study is a result like any other."""


def _read(file: Path) -> RunRecord:
    """Read and validate `results.json`."""
    text = file.read_bytes()
    again = "run the command that wrote it again; finished stages are not repeated"
    try:
        record = RunRecord.model_validate_json(text)
    except ValidationError as error:
        raise TombolaError(f"{file} {_describe_error(text, error)}: {again}") from None
    if not is_intact(text):
        raise DamagedArtefact(f"{file} was changed or damaged after it was written: {again}")
    return record.model_copy(update={"checksum": ""})


def _describe_error(text: bytes, error: ValidationError) -> str:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as damage:
        return f"is damaged and not valid JSON ({damage})"
    version = content.get("format") if isinstance(content, dict) else None
    if version != FORMAT:
        described = "no format" if version is None else f"format {version}"
        return f"has {described}, but this version of Tombola reads format {FORMAT}"
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"is not a result of format {FORMAT} ({where}: {first['msg'].lower()})"
