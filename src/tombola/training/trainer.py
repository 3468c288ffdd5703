"""`transformers.Trainer` with our objectives, batches and checkpoints in place of its own."""

import time
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments

from tombola.errors import TrainingDiverged
from tombola.objectives import Objective
from tombola.training.batches import ShuffledBatches
from tombola.training.checkpoints import (
    Checkpoints,
    restore_model,
    restore_optimizer,
    saved_rng,
    saved_seconds,
)
from tombola.training.seeding import rng_state, set_rng_state


class ObjectiveTrainer(Trainer):
    """Minimises an `Objective` over `ShuffledBatches`, and saves without pickle.

    The loss of an optimizer step is the mean over all items of its accumulated batches on all devices.
    """

    def __init__(
        self,
        model: nn.Module,
        args: TrainingArguments,
        *,
        objective: Objective,
        batches: ShuffledBatches,
        checkpoints: Checkpoints,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, args, **kwargs)
        self.objective = objective
        self.batches = batches
        self.checkpoints = checkpoints
        self.model_accepts_loss_kwargs = True  # makes the Trainer count the items of an accumulated batch
        self.examples = 0
        self.seconds_before = 0.0
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time spent training, with what a run before the resumption had spent up to its checkpoint."""
        return self.seconds_before + time.perf_counter() - self.started

    def get_train_dataloader(self) -> DataLoader:
        """The training batches, shared out over the processes."""
        loader = DataLoader(
            self.train_dataset,
            batch_sampler=self.batches,
            collate_fn=self.data_collator,
            pin_memory=self.args.dataloader_pin_memory,
        )
        return self.accelerator.prepare(loader)

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """The objective's mean loss on one batch."""
        return self.objective.loss(model, inputs)

    def training_step(
        self, model: nn.Module, inputs: dict[str, Tensor], num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Let the objective take its gradients, weighted by this batch's share of the step's items."""
        model.train()
        batch = self._prepare_inputs(inputs)
        self.examples += len(batch["labels"]) * self.accelerator.num_processes
        items = batch["labels"].ne(-100).sum()
        weight = self.accelerator.num_processes * items / num_items_in_batch
        self.objective.at(self.state.global_step / self.state.max_steps)
        loss = weight * self.objective.step(
            model, batch, lambda part: self.accelerator.backward(weight * part)
        )
        self._require_finite(loss, "loss")
        return loss

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        norm = super()._get_grad_norm(model, grad_norm)
        self._require_finite(torch.as_tensor(norm), "gradient")
        return norm

    def _require_finite(self, value: Tensor, what: str) -> None:
        if not torch.isfinite(value):
            good = self.checkpoints.last()
            kept = f"the last good checkpoint is {good}" if good else "no checkpoint had been written yet"
            raise TrainingDiverged(
                f"the {what} became {value.item()} in step {self.state.global_step + 1} at learning rate "
                f"{self._get_learning_rate():.3g}; {kept}. Lower the learning rate, or lengthen the warm-up"
            )

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        rng = gather_object([rng_state()])
        if self.args.should_save:
            self.checkpoints.write(
                self.model, self.optimizer, self.lr_scheduler, self.state, rng, seconds=self.seconds
            )

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        restore_model(Path(resume_from_checkpoint), self.model)
        self.seconds_before = saved_seconds(Path(resume_from_checkpoint))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            restore_optimizer(Path(checkpoint), self.optimizer, self.lr_scheduler)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            set_rng_state(saved_rng(Path(checkpoint), self.args.process_index))
