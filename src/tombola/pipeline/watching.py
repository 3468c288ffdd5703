"""How a run reports what happens: whoever starts it may pass a watcher."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tombola.store.stage import Stage


@dataclass(frozen=True)
class Failure:
    """A stage that could not be finished: why, in a sentence, and the file with its traceback."""

    stage: Stage[Any]
    reason: str
    log: Path


@dataclass
class Outcome:
    """How a run ended: what ran, what was finished before, what failed, and what needs a stage that failed."""

    ran: list[Stage[Any]] = field(default_factory=list)
    found: list[Stage[Any]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    blocked: list[Stage[Any]] = field(default_factory=list)

    @property
    def unfinished(self) -> set[str]:
        """The keys of the stages without a result."""
        return {stage.key for stage in [*(failure.stage for failure in self.failures), *self.blocked]}


class Watcher:
    """Is told what happens in a run. This one ignores it; those of the command line show it."""

    def planned(self, stages: Sequence[Stage[Any]], finished: Collection[str]) -> None:
        """All stages of the run, and the keys of those that are finished already. Nothing has run yet."""

    def begun(self, stage: Stage[Any]) -> None:
        """A stage starts."""

    def progressed(self, stage: Stage[Any], step: int, steps: int, figures: Mapping[str, float]) -> None:
        """A stage has done so many of its steps; `figures` are its newest numbers, such as the loss."""

    def ended(self, stage: Stage[Any], failure: Failure | None) -> None:
        """A stage is finished, or has failed."""

    def close(self) -> None:
        """Nothing more will happen."""
