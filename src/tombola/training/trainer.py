"""`transformers.Trainer` with our objectives, batches and checkpoints."""

import time
from pathlib import Path
from typing import Any, Literal

import torch
from accelerate.utils import gather_object
from torch import Tensor, nn
from torch.utils.data import DataLoader

from tombola.errors import TrainingDiverged
from tombola.foundations.lazy import postponed
from tombola.objectives import Objective, items_of
from tombola.training.batches import ShuffledBatches
from tombola.training.checkpoints import (
    Checkpoints,
    restore_model,
    restore_optimizer,
    saved_rng,
    saved_scaler,
    saved_seconds,
)
from tombola.training.clipping import clip, clip_each
from tombola.training.seeding import rng_state, set_rng_state

with postponed("datasets"):  # it loads pandas, which takes a second, and our batches do not need it
    from transformers import Trainer, TrainingArguments


class ObjectiveTrainer(Trainer):
    """Minimises an `Objective` over `ShuffledBatches`, and saves without pickle.

    The loss of an optimizer step is the mean over all items of its accumulated batches on all devices. A term with a
    mean of its own, such as the errors of hidden states over examples, is averaged over batches by their items.
    """

    def __init__(
        self,
        model: nn.Module,
        args: TrainingArguments,
        *,
        objective: Objective,
        batches: ShuffledBatches,
        checkpoints: Checkpoints,
        clip_per: Literal["all", "tensor"] = "all",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, args, **kwargs)
        self.objective = objective
        self.batches = batches
        self.checkpoints = checkpoints
        self.clip = clip if clip_per == "all" else clip_each
        self.examples = 0
        self.seconds_before = 0.0
        self.started = time.perf_counter()

    @property
    def trained(self) -> nn.Module:
        """The module that is optimised and saved in checkpoints."""
        model: nn.Module = self.model
        return model

    @property
    def seconds(self) -> float:
        """The training time in seconds, including that of earlier runs up to the checkpoint."""
        return self.seconds_before + time.perf_counter() - self.started

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the training batches, distributed over the processes."""
        loader: DataLoader[Any] = DataLoader(
            self.train_dataset,
            batch_sampler=self.batches,
            collate_fn=self.data_collator,
            pin_memory=self.args.dataloader_pin_memory,
        )
        prepared: DataLoader[Any] = self.accelerator.prepare(loader)
        return prepared

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Return the objective's mean loss on one batch."""
        return self.objective.loss(model, inputs)

    def training_step(
        self, model: nn.Module, inputs: dict[str, Tensor], num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Run the objective's step, weighted by this batch's share of the step's items."""
        if not (model.training and self.model.training):  # what wraps a model does not know the model's mode
            model.train()
        batch = self._prepare_inputs(inputs)
        self.examples += len(batch["labels"]) * self.accelerator.num_processes
        assert num_items_in_batch is not None
        weight = self.accelerator.num_processes * items_of(batch["labels"]) / num_items_in_batch
        self.objective.at(self.state.global_step / self.state.max_steps)
        loss: Tensor = weight * self.objective.step(model, batch, lambda part: self.backward(weight * part))
        self._require_finite(loss, "loss")
        return loss

    def _get_num_items_in_batch(self, batch_samples: list[dict[str, Tensor]], device: torch.device) -> Tensor:
        """Return the number of items in all batches of a step, on all processes."""
        items = torch.stack([items_of(batch["labels"]).to(device) for batch in batch_samples]).sum()
        counted: Tensor = self.accelerator.gather(items)
        return counted.sum()

    def floating_point_ops(self, inputs: dict[str, Any]) -> int:
        """Return 0: transformers would visit all parameters in every step, and nothing uses the count."""
        return 0

    def backward(self, loss: Tensor) -> None:
        """Backpropagate one pass."""
        self.accelerator.backward(loss)

    def _clip_grad_norm(self, model: nn.Module) -> Any:
        self.accelerator.unscale_gradients()
        return self.clip(self.trained.parameters(), self.args.max_grad_norm)

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        if grad_norm is None:
            self.accelerator.unscale_gradients()
            grad_norm = clip(self.trained.parameters(), float("inf"))
        scaler = self.accelerator.scaler
        if scaler is None or scaler.get_scale() < 1:  # a scaler skips steps that overflow, and scales less
            self._require_finite(grad_norm, "gradient")
        return grad_norm

    def _require_finite(self, value: Tensor, what: str) -> None:
        if not torch.isfinite(value):
            good = self.checkpoints.last()
            kept = f"the last good checkpoint is {good}" if good else "no checkpoint had been written yet"
            raise TrainingDiverged(
                f"the {what} became {value.item()} in step {self.state.global_step + 1} at learning rate "
                f"{self._get_learning_rate():.3g}; {kept}. Use a lower learning rate or a longer warm-up"
            )

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        rng = gather_object([rng_state()])
        if self.args.should_save:
            scaler = self.accelerator.scaler
            self.checkpoints.write(
                self.trained,
                self.optimizer,
                self.lr_scheduler,
                self.state,
                rng,
                seconds=self.seconds,
                scaler=scaler.state_dict() if scaler is not None else None,
            )

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        restore_model(Path(resume_from_checkpoint), self.trained)
        self.seconds_before = saved_seconds(Path(resume_from_checkpoint))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            restore_optimizer(Path(checkpoint), self.optimizer, self.lr_scheduler)

    def _load_scaler(self, checkpoint: str | None) -> None:
        if checkpoint is not None and self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(saved_scaler(Path(checkpoint)))

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            set_rng_state(saved_rng(Path(checkpoint), self.args.process_index))
