"""Base class of objectives on adversarial word embeddings. (Robust Tickets, §3.2)"""

from dataclasses import dataclass

from tombola.objectives import Objective
from tombola.objectives.settings import Ascent


@dataclass(frozen=True)
class Adversarial(Objective):
    """An objective whose loss an adversary raises, with the adversary's settings."""

    inner: Objective
    adversary: Ascent

    def at(self, share: float) -> None:
        """Pass the progress to the inner objective."""
        self.inner.at(share)
