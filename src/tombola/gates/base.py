"""The interfaces of gates and budgets. Both are settings and pure functions; `Gating` holds the state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from tombola.foundations.choices import Choice, Choices

if TYPE_CHECKING:
    import torch
    from torch import Tensor

HERE = "tombola.gates"

gates: Choices[type[Gate]] = Choices(
    "gate", [f"{HERE}.{name}" for name in ("bernoulli", "hard_concrete", "sign", "threshold")]
)
budgets: Choices[type[Budget]] = Choices(
    "budget", [f"{HERE}.{name}" for name in ("exact", "l0", "lagrangian")]
)


class Gate(Choice):
    """How a unit's score becomes a factor of its weights while it is learned.

    A gate sees margins: scores minus the cut that a budget may have set. It works unit by unit, on tensors of any
    shape.
    """

    choices: ClassVar = gates

    published: ClassVar[dict[str, Any]]
    """Default training settings for the scores of this gate."""

    straight: ClassVar[bool] = False
    """Whether the gradient passes straight through from factor to score, so that `back` changes nothing."""

    usual_budget: ClassVar[str] = "l0"
    """The default kind of budget: the one that the gate was published with."""

    noisy: ClassVar[bool] = True
    """Whether two samples of the same scores may differ."""

    bound: ClassVar[float | None] = None
    """The maximum distance of a score from the cut; scores are clamped to it after each step."""

    kind: str

    @abstractmethod
    def start(self, magnitudes: Tensor, removed: Tensor, generator: torch.Generator) -> tuple[Tensor, float]:
        """Return the initial scores and cut, from the units' magnitudes and the units that start shut."""
        ...

    @abstractmethod
    def sample(self, margin: Tensor, out: Tensor, generator: torch.Generator) -> Tensor:
        """Sample the factors into `out`; they apply until the next sample."""
        ...

    @abstractmethod
    def back(self, gradient: Tensor, sampled: Tensor, margin: Tensor) -> Tensor:
        """Turn the gradient with respect to the sampled factors into that of the scores; may overwrite `gradient`."""
        ...

    @abstractmethod
    def openness(self, margin: Tensor) -> Tensor:
        """Return the probability that each gate is not shut."""
        ...

    def expected(self, margin: Tensor) -> Tensor:
        """Return the factor without noise, by which a finished ticket's weights are multiplied."""
        return self.openness(margin)

    @abstractmethod
    def openness_slope(self, margin: Tensor) -> Tensor:
        """Return the derivative of the openness with respect to the score."""
        ...


class Moment(NamedTuple):
    """The state of a search before an optimizer step.

    Args:
        share: The completed fraction of the search, from 0 to 1.
        target: The requested sparsity.
        multipliers: Three numbers that the budget may change; they persist from step to step.
        openness: Computes the mean openness of all units.
        gradient: Computes the root mean square of the loss gradients of the scores, times their number: the
            derivative with respect to the mean if every unit had that gradient.
    """

    share: float
    target: float
    multipliers: Tensor
    openness: Callable[[], float]
    gradient: Callable[[], float]


class Budget(Choice):
    """How many gates may stay open, and what makes the others shut."""

    choices: ClassVar = budgets

    knows_sparsity: ClassVar[bool] = True
    """Whether the scores depend on the requested sparsity; if not, one search serves all sparsities."""

    kind: str

    def count_at(self, share: float, target: float) -> float | None:
        """Return the exact sparsity at this point of the search; None if the budget sets no exact count."""
        return None

    def resets_after(self, step: int) -> bool:
        """Return whether to restore the count after this optimizer step."""
        return False

    def pressure(self, now: Moment) -> float:
        """Return the derivative of the budget's loss term with respect to the mean openness of all units.

        Args:
            now: The state of the search.
        """
        return 0.0
