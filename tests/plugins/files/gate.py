"""A gate and a budget: deterministic sigmoids, and a constant pressure."""

from typing import Any, ClassVar, Literal

import torch

from tombola.gates import Budget, Gate, budgets, gates


@gates.register
class Sigmoid(Gate):
    """A factor of σ(score)."""

    published: ClassVar[dict[str, Any]] = {"epochs": 2.0, "learning_rate": 0.05}
    usual_budget: ClassVar[str] = "constant"

    kind: Literal["sigmoid"] = "sigmoid"
    initial: float = 1.0

    def start(self, magnitudes, removed, generator):
        return torch.full_like(magnitudes, self.initial), 0.0

    def sample(self, margin, out, generator):
        return torch.sigmoid(margin, out=out)

    def back(self, gradient, sampled, margin):
        return gradient.mul_(sampled).mul_(1 - sampled)

    def openness(self, margin):
        return torch.sigmoid(margin)

    def openness_slope(self, margin):
        open_ = torch.sigmoid(margin)
        return open_ * (1 - open_)


@budgets.register
class Constant(Budget):
    """The same pressure all the time."""

    knows_sparsity: ClassVar[bool] = False

    kind: Literal["constant"] = "constant"
    weight: float = 0.1

    def pressure(self, now):
        return self.weight
