"""AdamW that updates only weights of moderate risk. (ROSE, §3)"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.optim import AdamW
from torch.optim.adamw import adamw

from tombola.errors import TombolaError
from tombola.training.selective.freezing import Freezing, record, table
from tombola.training.selective.masks import Candidates
from tombola.training.selective.objective import DropoutRisk
from tombola.training.selective.settings import Selection

FIRST = "first"
COURSE = "course"


class SelectiveAdamW(AdamW):
    """AdamW that applies a fraction μ of the update to each candidate tensor, or to each weight in it.

    The moments are updated with g ← μ·g + (1−μ)·m, and μ scales both the step and the decay. So μ = 1 is torch's
    AdamW bit for bit, in the same kernels; μ = 0 leaves w and m unchanged, while v is updated with g = m. Gradients
    arrive clipped and unscaled, also for Second; those of tensors with 0 < μ < 1 are changed in place.

    The state dict includes the selection: the history of freezing in the first parameter group, and the last choice
    of First (if it serves several steps) with the moments.
    """

    def __init__(
        self,
        params: Iterable[Any],
        candidates: Candidates,
        selection: Selection,
        *,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        fused: bool = True,
        risk: DropoutRisk | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, fused=fused, foreach=not fused)
        if selection.two_passes and risk is None:
            raise TombolaError(f"the selection {selection.kind!r} needs a DropoutRisk")
        self._step_supports_amp_scaling = False  # a gradient scaler unscales before the step
        self.candidates = candidates
        self.selection = selection
        self.risk = risk
        self.seed = seed
        self.param_groups[0][COURSE] = {"steps": 0, "frozen": []}

    @property
    def steps(self) -> int:
        """The number of steps taken."""
        return int(self.param_groups[0][COURSE]["steps"])

    def freezing(self) -> Freezing:
        """Return how often each candidate was frozen."""
        return table(self.candidates.places, self.steps, self.param_groups[0][COURSE]["frozen"])

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore moments, choices and the history. torch casts everything in a weight's state to its dtype."""
        super().load_state_dict(state_dict)
        for state in self.state.values():
            if FIRST in state:
                state[FIRST] = state[FIRST].bool()
        self._request_measurement()

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Choose the weights, and update them."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        rows = {row.weight: row for group in self.param_groups for row in self._rows(group)}
        candidates = self._present(rows)
        shares = self._shares(candidates)
        if self.selection.elementwise:
            frozen = [1 - _move_elements(row, share) for row, share in zip(candidates, shares, strict=True)]
            for row in candidates:
                del rows[row.weight]
            whole_shares = {}
        else:
            values = torch.stack(list(shares)).tolist()
            frozen = [1 - share for share in values]
            whole_shares = {row.weight: share for row, share in zip(candidates, values, strict=True)}
        alike: dict[tuple[int, float], list[_Row]] = {}
        for weight, row in rows.items():
            alike.setdefault((id(row.group), whole_shares.get(weight, 1.0)), []).append(row)
        for (_, share), together in alike.items():
            _move(together, share)
        course = self.param_groups[0][COURSE]
        course["steps"] += 1
        record(course["frozen"], course["steps"], frozen)
        self._request_measurement()
        return loss

    def _rows(self, group: dict[str, Any]) -> Iterator["_Row"]:
        """Yield the group's weights that have a gradient, with their moments, initialised if missing."""
        lists: tuple[list[Tensor], ...] = ([], [], [], [], [], [])
        self._init_group(group, *lists)  # type: ignore[no-untyped-call]  # torch has no types for it
        weights, gradients, means, squares, _, steps = lists
        for row in zip(weights, gradients, means, squares, steps, strict=True):
            yield _Row(group, *row)

    def _present(self, rows: dict[Tensor, "_Row"]) -> list["_Row"]:
        missing = [
            f"{layer}.{kind}"
            for (layer, kind), weight in zip(self.candidates.places, self.candidates.weights, strict=True)
            if weight not in rows
        ]
        if missing:
            raise TombolaError(
                f"{len(missing)} weights to select from, such as {missing[0]}, have no gradient here: pass "
                "all trainable parameters, or set requires_grad to False for the others"
            )
        return [rows[weight] for weight in self.candidates.weights]

    def _shares(self, rows: list["_Row"]) -> Iterator[Tensor]:
        """Yield μ of each candidate: one number, or one per weight."""
        kind, gamma = self.selection.kind, self.selection.gamma
        if kind == "random":
            seed = np.random.default_rng((self.seed, self.steps // self.selection.every)).integers(2**63)
            lots = self.candidates.random_risks(self.selection, int(seed))
            chosen: Iterable[Tensor] = self.candidates.within(lots, self.selection)
        elif kind == "first":
            chosen = self._first()
        elif kind == "second":
            chosen = self._second(rows)
        else:
            pairs = zip(self._second(rows), self._first(), strict=True)
            chosen = (torch.lerp(second.float(), first.float(), gamma) for second, first in pairs)
        for share in chosen:
            yield share.float()

    def _first(self) -> list[Tensor]:
        """Return the choice by dropout, kept until the next renewal."""
        assert self.risk is not None
        if self.selection.every == 1:
            return self.risk.take()
        if self.risk.wanted:
            for weight, chosen in zip(self.candidates.weights, self.risk.take(), strict=True):
                self.state[weight][FIRST] = chosen
        return [self.state[weight][FIRST] for weight in self.candidates.weights]

    def _second(self, rows: list["_Row"]) -> Iterator[Tensor]:
        """Yield the choice by how far a gradient departs from its momentum; everything updates in the first step.

        The risk is |(1−β₁)·‖g‖/‖m‖ − 1| for a tensor and |(1−β₁)·g/m − 1| for a single weight, with the signs of
        both: a gradient that opposes its momentum has departed from it.
        """
        if self.steps == 0:
            yield from (torch.ones((), device=row.weight.device) for row in rows)
            return
        gradients: Iterable[Tensor] = [row.gradient for row in rows]
        means: Iterable[Tensor] = [row.mean for row in rows]
        if not self.selection.elementwise:
            gradients, means = (self.candidates.norms(values) for values in (gradients, means))
        yield from self.candidates.within(
            (
                ((1 - row.group["betas"][0]) * gradient / mean - 1).abs().nan_to_num(nan=0.0)
                for row, gradient, mean in zip(rows, gradients, means, strict=True)
            ),
            self.selection,
        )

    def _request_measurement(self) -> None:
        """Announce whether the next step needs a measurement."""
        if self.risk is not None:
            self.risk.wanted = self.steps % self.selection.every == 0
            self.risk.clear()


class _Row(NamedTuple):
    """A weight with its gradient, moments and parameter group."""

    group: dict[str, Any]
    weight: Tensor
    gradient: Tensor
    mean: Tensor
    square: Tensor
    step: Tensor


def _move(rows: list[_Row], share: float) -> None:
    """Update all tensors of one group with the same μ at once."""
    group = rows[0].group
    _, weights, gradients, means, squares, steps = (list(column) for column in zip(*rows, strict=True))
    beta1, beta2 = group["betas"]
    if share == 0:
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, means, means, 1 - beta2)
        torch._foreach_add_(steps, 1)
        return
    if share < 1:
        torch._foreach_lerp_(gradients, means, 1 - share)
    adamw(
        weights,
        gradients,
        means,
        squares,
        [],
        steps,
        fused=group["fused"],
        foreach=group["foreach"],
        amsgrad=False,
        beta1=beta1,
        beta2=beta2,
        lr=share * group["lr"],
        weight_decay=group["weight_decay"],
        eps=group["eps"],
        maximize=False,
    )


def _move_elements(row: _Row, share: Tensor) -> float:
    """Update one tensor with a μ per weight, and return the mean μ of its kept weights."""
    before = row.weight.clone()
    mean = share[before != 0].mean() if share.dim() else share
    row.gradient.lerp_(row.mean, 1 - share)
    _move([row], 1.0)
    row.weight.copy_(torch.lerp(before, row.weight, share))
    return mean.item()
