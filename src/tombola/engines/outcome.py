"""What becomes of the stages of a study, and who is told while they run."""

from dataclasses import dataclass, field
from pathlib import Path

from tombola.store import Stage


@dataclass(frozen=True)
class Failure:
    """A stage that could not be finished: why, in a sentence, and where the whole story is."""

    stage: Stage
    reason: str
    log: Path


@dataclass
class Outcome:
    """How a study ended: what ran now, what was found finished, what failed, and what stands on what failed."""

    ran: list[Stage] = field(default_factory=list)
    found: list[Stage] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    blocked: list[Stage] = field(default_factory=list)

    @property
    def unfinished(self) -> set[str]:
        """The keys of the stages that there is no result of."""
        return {stage.key for stage in [*(failure.stage for failure in self.failures), *self.blocked]}


class Watcher:
    """Is told what happens. This one looks away; the command's shows a table."""

    def planned(self, stages: int, found: int) -> None:
        """Nothing has run yet; so many stages were found finished."""

    def begun(self, stage: Stage) -> None:
        """A stage has been given to a worker."""

    def progressed(self, stage: Stage, step: int, steps: int) -> None:
        """A stage has come to a step of so many."""

    def ended(self, stage: Stage, failure: Failure | None) -> None:
        """A stage is finished, or has failed."""
