"""A stage that sleeps, in a module that worker processes can import."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tombola.store.stage import Stage, Workspace


@dataclass(frozen=True, eq=False, kw_only=True)
class Sleep(Stage[None]):
    """A stage that sleeps."""

    kind: ClassVar = "sleep"
    version: ClassVar = 1

    seconds: float
    number: int

    @property
    def label(self) -> str:
        """Which of them it is."""
        return f"sleep {self.number}"

    def run(self, space: Workspace) -> None:
        """Sleep."""
        time.sleep(self.seconds)

    def read(self, folder: Path) -> None:
        """Nothing is left to read."""
        return None
