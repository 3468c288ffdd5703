"""Selective updates in any `transformers.Trainer`."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, Trainer, TrainingArguments

from tombola.errors import TombolaError
from tombola.objectives import logits_of
from tombola.training.dropout import has_dropout
from tombola.training.selective.callback import selective_optimizer
from tombola.training.selective.freezing import Freezing
from tombola.training.selective.masks import Candidates
from tombola.training.selective.objective import DropoutRisk, doubled
from tombola.training.selective.optimizer import SelectiveAdamW
from tombola.training.selective.settings import Selection


class RoseTrainer(Trainer):
    """A `Trainer` whose AdamW updates selectively: `RoseTrainer(model, args, selection=Selection(...), ...)`.

    The loss stays as it is: the model's own, label smoothing or `compute_loss_func`; for First and Ensemble it is
    that of the doubled batch. To combine this with your own trainer, inherit from both, this one first. `Second` and
    `random` need only the optimizer: `Trainer(optimizers=(SelectiveAdamW(...), None))`.

    Args:
        model: Any model of a known family.
        args: Training arguments, including learning rate, betas and epsilon of AdamW.
        selection: Which weights a step updates, such as `tombola.Selection(kind="first", upper=60)`.
        kwargs: Any argument of `Trainer`; with `callbacks=[tombola.KeepMask(mask)]` it trains a ticket.

    Raises:
        TombolaError: If the selection compares two dropout passes, but the model has no dropout.
    """

    def __init__(
        self, model: PreTrainedModel, args: TrainingArguments, *, selection: Selection, **kwargs: Any
    ) -> None:
        freezes = selection.lower > 0 or selection.upper < 100
        if selection.two_passes and freezes and not has_dropout(model):
            raise TombolaError(
                f"{selection.kind} compares two dropout passes, but the model has no dropout: set it in the model's "
                "config"
            )
        candidates = Candidates(model)
        summed = args.gradient_accumulation_steps > 1
        self.risk = DropoutRisk(candidates, selection, summed) if selection.two_passes else None
        adamw = {
            "lr": args.learning_rate,
            "betas": (args.adam_beta1, args.adam_beta2),
            "eps": args.adam_epsilon,
            "candidates": candidates,
            "selection": selection,
            "risk": self.risk,
            "seed": args.seed,
        }
        super().__init__(model, args, optimizer_cls_and_kwargs=(SelectiveAdamW, adamw), **kwargs)
        if self.risk is not None:
            self.risk.scaler = self.accelerator.scaler

    def freezing(self) -> Freezing:
        """Return how often each tensor was frozen so far."""
        return selective_optimizer(self.optimizer).freezing()

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """Return the loss; with two dropout passes, their mean."""
        if self.risk is None or not model.training:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        items = None if num_items_in_batch is None else 2 * num_items_in_batch
        targets = [inputs[name] for name in self.label_names]
        labels = targets[0] if len(targets) == 1 else torch.stack(targets, dim=1)
        loss, outputs = super().compute_loss(model, doubled(inputs), True, items)
        self.risk.measure(logits_of(outputs), labels)
        return (loss, outputs) if return_outputs else loss
