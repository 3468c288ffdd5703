"""What every gate and every budget can do. Both are settings and pure functions; the state is in `Gating`."""

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

    A gate sees margins: scores less the cut that a budget may have set. Its arithmetic is per unit, in
    tensors of any shape.
    """

    choices: ClassVar = gates

    published: ClassVar[dict[str, Any]]
    """How the scores of such gates are trained where a recipe does not say: settings of a training."""

    straight: ClassVar[bool] = False
    """Whether a score's derivative is taken to be its factor's, so that `back` changes nothing."""

    usual_budget: ClassVar[str] = "l0"
    """The kind of budget where a recipe names none: the one that the gate was published with."""

    noisy: ClassVar[bool] = True
    """Whether two samples of the same scores may differ."""

    bound: ClassVar[float | None] = None
    """How far a score may lie from the cut; the optimizer's steps beyond are undone."""

    kind: str

    @abstractmethod
    def start(self, magnitudes: Tensor, removed: Tensor, generator: torch.Generator) -> tuple[Tensor, float]:
        """The first scores and the first cut, from the units' magnitudes and from which of them are to be shut."""
        ...

    @abstractmethod
    def sample(self, margin: Tensor, out: Tensor, generator: torch.Generator) -> Tensor:
        """The factors until the next sample, written into `out`."""
        ...

    @abstractmethod
    def back(self, gradient: Tensor, sampled: Tensor, margin: Tensor) -> Tensor:
        """The loss's derivative by the scores from that by the sampled factors; may overwrite `gradient`."""
        ...

    @abstractmethod
    def openness(self, margin: Tensor) -> Tensor:
        """The probability that each gate is not shut."""
        ...

    @abstractmethod
    def openness_slope(self, margin: Tensor) -> Tensor:
        """The derivative of the openness by the score."""
        ...


class Moment(NamedTuple):
    """Where a search stands before a step of the optimizer.

    Args:
        share: How much of the search is done, from 0 to 1.
        target: The sparsity that is asked for.
        multipliers: Three numbers that are kept for the budget from step to step, and may be changed.
        openness: Computes the mean openness of all units.
        gradient: Computes the root mean square of the loss's derivatives by the scores, times their number: what the
            derivative by the mean is where each unit has that one.
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
    """Whether the scores depend on the sparsity that is asked for; if not, one search serves all."""

    kind: str

    def count_at(self, share: float, target: float) -> float | None:
        """The exact sparsity once a share of the search is done; None without an exact count."""
        return None

    def resets_after(self, step: int) -> bool:
        """Whether the count is restored after this optimizer step."""
        return False

    def pressure(self, now: Moment) -> float:
        """The derivative of the budget's term by the mean openness of all units.

        Args:
            now: Where the search stands.
        """
        return 0.0
