"""Statistics of the inputs of linear layers, accumulated while calibration passes examples through a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal, Self

from tombola.foundations.lazy import lazy_module

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from tombola.search.calibration import LayerWalk
else:
    torch = lazy_module("torch")

StatisticName = Literal["squares", "hessian"]
"""The statistic of a linear layer's inputs x: the sum of squares of each input, or of all products, X'X."""


class Watch:
    """Accumulates statistics of the inputs of linear layers, by name; layers with equal inputs share them.

    Args:
        walk: The batches.
        maps: The linear layers by name.
        statistic: The statistic.
    """

    def __init__(self, walk: LayerWalk, maps: Mapping[str, nn.Module], statistic: StatisticName) -> None:
        self.walk, self.maps = walk, maps
        self._add = {"squares": _add_squares, "hessian": _add_products}[statistic]
        self._seen: dict[str, list[int]] = {name: [] for name in maps}
        """The numbers of the inputs that each linear layer receives in the first batch."""
        self._sums: dict[int, Tensor] = {}
        self._totals: dict[str, Tensor] | None = None
        self._last: Tensor | None = None
        self._hooks = ExitStack()

    def __enter__(self) -> Self:
        for name, module in self.maps.items():
            hook = module.register_forward_pre_hook(self._hook(name))
            self._hooks.callback(hook.remove)
        return self

    def __exit__(self, *_: object) -> None:
        self._hooks.close()
        self._last = None

    def totals(self) -> dict[str, Tensor]:
        """Return the sums; 0 for a linear layer without input."""
        if self._totals is None:
            self._share_observers()
        assert self._totals is not None
        owners = {tuple(self._seen[name]): total for name, total in self._totals.items()}
        totals = {
            name: owners[key] if (key := tuple(self._seen[name])) else self._zeros(module)
            for name, module in self.maps.items()
        }
        places = {name: _weight_of(module).device for name, module in self.maps.items()}
        return {
            name: total if total.device == places[name] else total.float().to(places[name])
            for name, total in totals.items()
        }

    def _hook(self, name: str) -> Callable[[nn.Module, Any], None]:
        def watch(module: nn.Module, arguments: Any) -> None:
            values = arguments[0]
            if self.walk.current == 0:
                if values is not self._last:
                    self._last = values
                    self._sums[len(self._sums)] = self._add(None, self.walk.rows(values))
                self._seen[name].append(len(self._sums) - 1)
                return
            if self._totals is None:
                self._share_observers()
            assert self._totals is not None
            if name in self._totals:
                self._totals[name] = self._add(self._totals[name], self.walk.rows(values))

        return watch

    def _share_observers(self) -> None:
        """After the first batch, let one of the linear layers with equal inputs observe for all of them."""
        self._last = None
        first = {tuple(keys): name for name, keys in reversed(self._seen.items()) if keys}
        self._totals = {
            name: self._sums[key[0]]
            if len(key) == 1
            else torch.stack([self._sums[name] for name in key]).sum(0)
            for key, name in first.items()
        }
        self._sums = {}

    def _zeros(self, module: nn.Module) -> Tensor:
        weight = _weight_of(module)
        width = weight.shape[1] if isinstance(module, torch.nn.Linear) else weight.shape[0]  # else a Conv1D
        shape = (width,) if self._add is _add_squares else (width, width)
        return torch.zeros(shape, device=weight.device)


def _weight_of(module: nn.Module) -> Tensor:
    weight: Tensor = module.weight  # type: ignore[assignment]
    return weight


def _add_squares(total: Tensor | None, rows: Tensor) -> Tensor:
    """Add up squares in 64 bits, which Apple's GPUs do not have."""
    squares = rows.float().square().sum(dim=0)
    squares = (squares.cpu() if squares.is_mps else squares).double()
    return squares if total is None else total.add_(squares)


def _add_products(total: Tensor | None, rows: Tensor) -> Tensor:
    rows = rows.float()
    return rows.T @ rows if total is None else total.addmm_(rows.T, rows)
