"""What objectives on adversarial word embeddings share. (Robust Tickets, §3.2)"""

from dataclasses import dataclass

from tombola.objectives import Objective
from tombola.objectives.settings import Ascent


@dataclass(frozen=True)
class Adversarial(Objective):
    """An objective whose loss an adversary raises, and how the adversary goes about it."""

    inner: Objective
    adversary: Ascent

    def at(self, share: float) -> None:
        """Pass it on."""
        self.inner.at(share)
