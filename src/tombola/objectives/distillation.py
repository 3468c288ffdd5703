"""Distillation: learn a teacher's outputs, and its hidden states. (Hinton et al. 2015; Jiao et al. 2020, TinyBERT)"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from tombola.errors import TombolaError
from tombola.foundations.hardware import Precision, autocast
from tombola.foundations.lazy import lazy_module
from tombola.foundations.settings import Settings
from tombola.objectives import Batch, LogitLoss, Objective, inputs_of, is_multi_label, logits_of

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn
    from transformers import PreTrainedModel
else:
    torch, F = lazy_module("torch"), lazy_module("torch.nn.functional")

LOGITS, STATES = "teacher_logits", "teacher_states"
"""The columns of a batch that hold what the teacher says: (examples, …) as the student's logits are, and
(examples, layers, tokens, width)."""


class Distill(Settings):
    """Learning from a teacher: weight · KL of the outputs + (1 − weight) · the loss on the labels."""

    temperature: float = Field(
        2.0, gt=0, description="what both models' logits are divided by; the KL is multiplied by its square"
    )
    weight: float = Field(0.9, ge=0, le=1, description="share of the KL in the loss; the labels get the rest")
    hidden: float = Field(
        0.0,
        ge=0,
        description="weight of the mean squared error between hidden states, added to the rest; where the teacher "
        "has another width, a projection is learned and thrown away",
    )
    layers: Literal["even", "last"] | tuple[int, ...] = Field(
        "even",
        description="hidden: each layer learns from the teacher's at the same relative depth, the last from the last "
        "alone, or each from the teacher's layer given here (0: the embeddings)",
    )
    teacher: str | None = Field(
        None,
        description="a model fine-tuned on the task, as a folder or hub id; else the recipe's own plain fine-tuning",
    )


@dataclass(frozen=True)
class Distilled(LogitLoss):
    """A loss of logits with a teacher's outputs as further targets: w·T²·KL(teacher ‖ student) + (1 − w)·inner.

    The KL is between softmax(logits / T), as a mean over the items; of each label's probability by itself where an
    example has several; for regression it is the mean squared difference, without a temperature.
    """

    inner: LogitLoss
    settings: Distill

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """The weighted mean of both parts."""
        weight = self.settings.weight
        taught = weight * divergence(batch[LOGITS], logits, batch["labels"], self.settings.temperature)
        return taught if weight == 1 else taught + (1 - weight) * self.inner.of_logits(logits, batch)

    def at(self, share: float) -> None:
        """Pass it on."""
        self.inner.at(share)


def divergence(teacher: Tensor, student: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """T²·KL(teacher ‖ student) at a temperature, as a mean over the items; see `Distilled`."""
    teacher, student = teacher.float(), student.float()
    if labels.is_floating_point() and not is_multi_label(labels):
        return F.mse_loss(student, teacher)
    teacher, student = teacher / temperature, student / temperature
    if is_multi_label(labels):
        p = teacher.sigmoid()
        gain = F.logsigmoid(teacher) - F.logsigmoid(student)
        loss = F.logsigmoid(-teacher) - F.logsigmoid(-student)
        return temperature**2 * (p * gain + (1 - p) * loss).mean()
    items = labels.ne(-100)
    p, q = teacher[items].log_softmax(-1), student[items].log_softmax(-1)
    return temperature**2 * F.kl_div(q, p, log_target=True, reduction="batchmean")


@dataclass(frozen=True)
class HiddenStates(Objective):
    """An objective of one pass, and the mean squared error between the pass's hidden states and the teacher's.

    The mean is over layers, numbers and an example's real tokens, and then over examples. A pass of a batch that holds
    every example several times (R-Drop) compares each with the same states of the teacher.
    """

    inner: Objective
    weight: float
    student_layers: tuple[int, ...]

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The inner loss, and `weight` times the error."""
        with _hidden_states(model) as states:
            loss = self.inner.loss(model, batch)
        (seen,) = states
        own = torch.stack([seen[layer] for layer in self.student_layers], dim=1)
        return loss + self.weight * self._error(own.float(), batch)

    def _error(self, own: Tensor, batch: Batch) -> Tensor:
        wanted = batch[STATES].float()
        real = batch["attention_mask"] if "attention_mask" in batch else torch.ones_like(batch["input_ids"])
        copies = len(own) // len(wanted)
        wanted, real = wanted.repeat(copies, 1, 1, 1), real.repeat(copies, 1).float()
        squares = (own - wanted).square().mean(dim=(1, 3))
        return ((squares * real).sum(-1) / real.sum(-1)).mean()

    def at(self, share: float) -> None:
        """Pass it on."""
        self.inner.at(share)


@dataclass(frozen=True)
class WithTeacher(Objective):
    """Asks the teacher once for each batch, and leaves what it says beside the inputs, where `Distilled` reads it.

    The teacher runs on the texts of this very batch, so that it answers for augmented ones too; adversaries inside
    perturb the student alone, and their further passes do not ask again. A teacher of the student's size adds one
    forward pass without a graph: a quarter to a third of a plain step. It never changes and is never saved.
    """

    inner: Objective
    teacher: PreTrainedModel
    layers: tuple[int, ...] = ()
    precision: Precision = "fp32"

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The inner loss on the batch with the teacher's outputs."""
        return self.inner.loss(model, self.taught(batch))

    def step(self, model: nn.Module, batch: Batch, backward: Callable[[Tensor], None]) -> Tensor:
        """The inner step on the same."""
        return self.inner.step(model, self.taught(batch), backward)

    def at(self, share: float) -> None:
        """Pass it on."""
        self.inner.at(share)

    def taught(self, batch: Batch) -> dict[str, Tensor]:
        """The batch with the teacher's logits, and its hidden states where they are wanted."""
        device = batch["input_ids"].device
        self.teacher.to(device)
        self.teacher.eval()
        known = signature(self.teacher.forward).parameters
        inputs: dict[str, Any] = {
            name: values for name, values in inputs_of(batch).items() if name in known or "kwargs" in known
        }
        with torch.no_grad(), autocast(device.type, self.precision):
            output: Mapping[str, Any] = self.teacher(**inputs, output_hidden_states=bool(self.layers))
        columns = {LOGITS: logits_of(output)}
        if self.layers:
            states = output["hidden_states"]
            columns[STATES] = torch.stack([states[layer] for layer in self.layers], dim=1)
        return {**batch, **columns}


def mapped_layers(
    layers: str | tuple[int, ...], student: int, teacher: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which of the student's hidden states learn from which of the teacher's; number 0 is the embeddings.

    Args:
        layers: `even`, `last`, or the teacher's layer for each of the student's.
        student: How many layers the student has.
        teacher: How many the teacher has.

    Raises:
        TombolaError: If the list does not fit the models.
    """
    if layers == "last":
        return (student,), (teacher,)
    own = tuple(range(1, student + 1))
    if isinstance(layers, str):
        return own, tuple(round(layer * teacher / student) for layer in own)
    if len(layers) != student or not all(0 <= layer <= teacher for layer in layers):
        raise TombolaError(
            f"distill.layers: takes one layer of the teacher, from 0 to {teacher}, for each of the model's "
            f"{student} layers; not {list(layers)}"
        )
    return own, layers


@contextmanager
def _hidden_states(model: nn.Module) -> Iterator[list[tuple[Tensor, ...]]]:
    """Inside, every pass of the model also gives its hidden states, which are put into the list."""
    seen: list[tuple[Tensor, ...]] = []

    def ask(module: nn.Module, arguments: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return arguments, {**options, "output_hidden_states": True}

    def note(module: nn.Module, arguments: Any, output: Mapping[str, Any]) -> None:
        seen.append(output["hidden_states"])

    hooks = (model.register_forward_pre_hook(ask, with_kwargs=True), model.register_forward_hook(note))
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
