"""Task-specific masks on shared weights: applied for a step, then undone without a trace."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tombola.masks import Mask
from tombola.training.multitask.model import SharedModel

State = Mapping[nn.Parameter, Mapping[str, Any]]


class TaskMasks(TrainerCallback):
    """Makes every step use and change only the weights that the mask of its task keeps.

    Removed weights are zero from the step's first forward pass and get no gradient, so that clipping sees only kept
    weights. After the optimizer step their values and moments are restored: neither momentum nor weight decay of one
    task moves the units of another. The forward pass is unchanged.
    """

    def __init__(self, model: SharedModel, masks: Sequence[Mask]) -> None:
        self.model = model
        self.masks = masks
        self._removed: list[dict[nn.Parameter, Tensor]] = []
        self._hooks: list[RemovableHandle] = []
        self._applied: dict[nn.Parameter, tuple[Tensor, Tensor]] = {}
        self._moments: dict[nn.Parameter, dict[str, Tensor]] = {}

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Find the shared weights that each mask removes, on their current device."""
        weights = dict(self.model.base_model.named_parameters())
        self._removed = [
            {weights[name]: ~kept for name, kept in mask.tensors(self.model.models[0]).items()}
            for mask in self.masks
        ]
        self._hooks = [
            weight.register_post_accumulate_grad_hook(self._mask_gradient)
            for weight in dict.fromkeys(weight for removed in self._removed for weight in removed)
        ]

    @torch.no_grad()
    def apply(self, task: int) -> None:
        """Zero the weights that the task's mask removes until the step ends, for all its batches."""
        if self._applied:
            return
        for weight, removed in self._removed[task].items():
            self._applied[weight] = removed, weight.detach().clone()
            weight.masked_fill_(removed, 0.0)

    def _mask_gradient(self, weight: nn.Parameter) -> None:
        if weight in self._applied:
            assert weight.grad is not None
            weight.grad.masked_fill_(self._applied[weight][0], 0.0)

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Save the moments of removed weights; missing moments count as zero."""
        optimizer_state: State = kwargs["optimizer"].state
        self._moments = {
            weight: {name: value.clone() for name, value in _moments(optimizer_state, weight).items()}
            for weight in self._applied
        }

    @torch.no_grad()
    def on_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Restore the weights and moments of removed weights."""
        optimizer_state: State = kwargs["optimizer"].state
        for weight, (removed, _) in self._applied.items():
            for name, moment in _moments(optimizer_state, weight).items():
                before = self._moments[weight].get(name, torch.zeros_like(moment))
                _put_back(moment, removed, before)
        self.restore()

    @torch.no_grad()
    def restore(self) -> None:
        """Restore the values of the removed weights."""
        for weight, (removed, original) in self._applied.items():
            _put_back(weight, removed, original)
        self._applied, self._moments = {}, {}

    def release(self) -> None:
        """Restore the weights and remove the hooks."""
        self.restore()
        for hook in self._hooks:
            hook.remove()
        self._removed, self._hooks = [], []


def _moments(state: State, weight: nn.Parameter) -> dict[str, Tensor]:
    """Return the optimizer's element-wise state of a weight."""
    return {
        name: value
        for name, value in state.get(weight, {}).items()
        if isinstance(value, Tensor) and value.shape == weight.shape
    }


def _put_back(tensor: Tensor, removed: Tensor, before: Tensor) -> None:
    torch.where(removed, before, tensor, out=tensor)
