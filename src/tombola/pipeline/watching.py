"""Progress events and the outcome of a run; callers may pass a watcher."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tombola.errors import TombolaError
from tombola.store.stage import Stage


@dataclass(frozen=True)
class Failure:
    """A failed stage: the reason in a sentence, and the file with its traceback."""

    stage: Stage[Any]
    reason: str
    log: Path

    def error(self) -> TombolaError:
        """Return the error of a run that ends at this failure."""
        return TombolaError(f"{self.stage.label}: {self.reason}. Its log: {self.log}")


@dataclass
class Outcome:
    """How a run ended: the stages that ran, were finished before, failed, or are blocked by a failed one."""

    ran: list[Stage[Any]] = field(default_factory=list)
    found: list[Stage[Any]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    blocked: list[Stage[Any]] = field(default_factory=list)

    @property
    def unfinished(self) -> set[str]:
        """The keys of the stages without a result."""
        return {stage.key for stage in [*(failure.stage for failure in self.failures), *self.blocked]}


class Watcher:
    """Receives the progress events of a run. This base class ignores them; the command line shows them."""

    def planned(self, stages: Sequence[Stage[Any]], finished: Collection[str]) -> None:
        """The run is about to start; `finished` are the keys of the stages that need not run."""

    def begun(self, stage: Stage[Any]) -> None:
        """A stage starts."""

    def progressed(self, stage: Stage[Any], step: int, steps: int, figures: Mapping[str, float]) -> None:
        """A stage has done `step` of its `steps`; `figures` are its latest numbers, such as the loss."""

    def ended(self, stage: Stage[Any], failure: Failure | None) -> None:
        """A stage is finished, or has failed."""

    def close(self) -> None:
        """The run is over."""
