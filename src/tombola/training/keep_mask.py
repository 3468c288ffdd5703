"""Training under a fixed mask: removed weights are and stay zero, and leave no trace in the optimizer."""

from typing import Any

import torch
from accelerate.utils import extract_model_from_parallel
from torch import nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tombola.masks import Mask
from tombola.masks.layout import parameters_of


class KeepMask(TrainerCallback):
    """Keeps a model masked in any `transformers.Trainer`: `Trainer(callbacks=[KeepMask(mask)])`.

    The forward pass is unchanged. The gradients of removed weights are zeroed as they arrive, so that clipping,
    data-parallel averaging and the optimizer's moments see only kept weights. The weights are zeroed again after each
    step, for optimizers that mix entries or have earlier moments.
    """

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self._weights: list[torch.Tensor] = []
        self._kept: list[torch.Tensor] = []
        self._hooks: list[RemovableHandle] = []

    def hold(self, model: nn.Module) -> None:
        """Apply the mask now and zero the gradients of removed weights until `release`."""
        self.release()
        bare: PreTrainedModel = extract_model_from_parallel(model)
        self.mask.apply(bare)
        parameters = parameters_of(bare)
        for name, kept in self.mask.tensors(bare).items():
            weight = parameters[name]
            self._weights.append(weight)
            # a product with bytes takes half the time of one with booleans
            self._kept.append(kept.to(weight.device).view(torch.uint8))
            if weight.requires_grad:
                self._hooks.append(weight.register_post_accumulate_grad_hook(_masking(self._kept[-1])))

    @torch.no_grad()
    def zero(self) -> None:
        """Zero the removed weights again."""
        if self._weights:
            torch._foreach_mul_(self._weights, self._kept)

    def release(self) -> None:
        """Remove the hooks from the model."""
        for hook in self._hooks:
            hook.remove()
        self._weights, self._kept, self._hooks = [], [], []

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Hold the model before training."""
        self.hold(kwargs["model"])

    def on_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Zero removed weights that the optimizer may have moved."""
        self.zero()

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Release the trained model."""
        self.release()


def _masking(kept: torch.Tensor) -> Any:
    def mask_gradient(weight: torch.Tensor) -> None:
        assert weight.grad is not None
        weight.grad.mul_(kept)

    return mask_gradient
