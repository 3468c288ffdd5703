"""Distillation of a teacher's outputs and hidden states. (Hinton et al. 2015; Jiao et al. 2020, TinyBERT)"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from tombola.errors import TombolaError
from tombola.foundations.hardware import Precision, autocast
from tombola.foundations.lazy import lazy_module
from tombola.foundations.settings import Settings
from tombola.objectives import Batch, LogitLoss, Objective, inputs_of, is_multi_label, logits_of
from tombola.objectives.consistency import COPY

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn
    from transformers import PreTrainedModel
else:
    torch, F = lazy_module("torch"), lazy_module("torch.nn.functional")

LOGITS, STATES = "teacher_logits", "teacher_states"
"""The batch columns of the teacher's outputs: logits of the same shape as the student's, and hidden states
(examples, layers, tokens, width)."""

ADVERSARIAL = "adversarial_of"
"""The batch column with the distance in rows from an adversarial text up to its original; 0 for other rows."""


class Distill(Settings):
    """Distillation from a teacher: weight · KL of the outputs + (1 − weight) · the loss on the labels."""

    temperature: float = Field(
        2.0, gt=0, description="divides the logits of both models; the KL is multiplied by its square"
    )
    weight: float = Field(
        0.9, ge=0, le=1, description="share of the KL in the loss; the rest is the loss on the labels"
    )
    hidden: float = Field(
        0.0,
        ge=0,
        description="weight of an added mean squared error between hidden states; if the teacher's width differs, a "
        "projection is learned, and discarded afterwards",
    )
    layers: Literal["even", "last"] | tuple[int, ...] = Field(
        "even",
        description="hidden: match each layer with the teacher's at the same relative depth (even), only the last "
        "layers (last), or each layer with a listed one of the teacher (0: the embeddings)",
    )
    teacher: str | None = Field(
        None,
        description="folder or hub id of a model fine-tuned on the task; by default the recipe's own plain fine-tuning",
    )

    @model_validator(mode="after")
    def _layers_of_hidden_states(self) -> Self:
        if self.layers != "even" and not self.hidden:
            raise ValueError("layers: says which hidden states to match; set hidden above 0, or leave it out")
        return self

    @model_validator(mode="after")
    def _learns_from_the_teacher(self) -> Self:
        if not self.weight and not self.hidden:
            raise ValueError("weight: 0 learns nothing from the teacher; set weight or hidden above 0")
        if not self.weight and self.temperature != type(self).model_fields["temperature"].default:
            raise ValueError(
                "temperature: has no effect with weight: 0, which leaves out the logits; leave it out"
            )
        return self


@dataclass(frozen=True)
class Distilled(LogitLoss):
    """A loss with a teacher's outputs as additional targets: w·T²·KL(teacher ‖ student) + (1 − w)·inner.

    The KL is between softmax(logits / T), averaged over the items; for multi-label tasks it is that of each label's
    probability; for regression it is the mean squared difference, without a temperature.
    """

    inner: LogitLoss
    settings: Distill

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the weighted mean of both parts."""
        weight = self.settings.weight
        taught = weight * divergence(batch[LOGITS], logits, batch["labels"], self.settings.temperature)
        return taught if weight == 1 else taught + (1 - weight) * self.inner.of_logits(logits, batch)

    def at(self, share: float) -> None:
        """Pass the progress to the inner objective."""
        self.inner.at(share)


def divergence(teacher: Tensor, student: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Return T²·KL(teacher ‖ student) at a temperature, averaged over the items; see `Distilled`."""
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
    """A single-pass objective plus the mean squared error between the pass's hidden states and the teacher's.

    The mean is over layers, features and an example's real tokens, and then over examples. If a batch holds every
    example several times (R-Drop), each copy is compared with the same states of the teacher. Adversarial texts,
    changed copies and passes without the teacher's states are left out: their tokens are not those of the original,
    and a teacher that they fool has nothing to teach.
    """

    inner: Objective
    weight: float
    student_layers: tuple[int, ...]

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the inner loss plus `weight` times the error."""
        if STATES not in batch:
            return self.inner.loss(model, batch)
        with _hidden_states(model) as states:
            loss = self.inner.loss(model, batch)
        (hidden_states,) = states
        student = torch.stack([hidden_states[layer] for layer in self.student_layers], dim=1)
        return loss + self.weight * self._error(student.float(), batch)

    def _error(self, student: Tensor, batch: Batch) -> Tensor:
        teacher = batch[STATES].float()
        real = batch["attention_mask"] if "attention_mask" in batch else torch.ones_like(batch["input_ids"])
        copies = len(student) // len(teacher)
        teacher, real = teacher.repeat(copies, 1, 1, 1), real.repeat(copies, 1).float()
        squares = (student - teacher).square().mean(dim=(1, 3))
        errors = (squares * real).sum(-1) / real.sum(-1)
        if (distance := _distance(batch)) is not None:
            errors = errors[distance.eq(0).repeat(copies)]
        return errors.mean()

    def at(self, share: float) -> None:
        """Pass it on."""
        self.inner.at(share)


@dataclass(frozen=True)
class WithTeacher(Objective):
    """Runs the teacher once per batch, and adds its outputs to the batch, where `Distilled` reads them.

    The teacher runs on the texts of the same batch, including augmented ones. Where the batch holds the original too,
    as for adversarial texts and for the copies of `augment.consistency`, its answer to the original counts (Goldblum
    et al. 2020), because what fools the student often fools the teacher. Inner adversaries perturb only the student,
    and their further passes do not run the teacher again. A teacher of the student's size adds one forward pass
    without a graph: a quarter to a third of a plain step. It is never changed or saved.
    """

    inner: Objective
    teacher: PreTrainedModel
    layers: tuple[int, ...] = ()
    precision: Precision = "fp32"

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the inner loss on the batch with the teacher's outputs."""
        return self.inner.loss(model, self.taught(batch))

    def step(self, model: nn.Module, batch: Batch, backward: Callable[[Tensor], None]) -> Tensor:
        """Run the inner step on the batch with the teacher's outputs."""
        return self.inner.step(model, self.taught(batch), backward)

    def at(self, share: float) -> None:
        """Pass it on."""
        self.inner.at(share)

    def taught(self, batch: Batch) -> dict[str, Tensor]:
        """Return the batch with the teacher's logits and, if needed, its hidden states."""
        device = batch["input_ids"].device
        if self.teacher.device != device or self.teacher.training:  # else milliseconds of every step
            self.teacher.to(device).eval()
        parameters = signature(self.teacher.forward).parameters
        inputs: dict[str, Any] = {
            name: values
            for name, values in inputs_of(batch).items()
            if name in parameters or "kwargs" in parameters
        }
        with torch.no_grad(), autocast(device.type, self.precision):
            output: Mapping[str, Any] = self.teacher(**inputs, output_hidden_states=bool(self.layers))
        logits = logits_of(output)
        if (distance := _distance(batch)) is not None:
            logits = logits[torch.arange(len(logits), device=device) - distance]
        columns = {LOGITS: logits}
        if self.layers:
            states = output["hidden_states"]
            columns[STATES] = torch.stack([states[layer] for layer in self.layers], dim=1)
        return {**batch, **columns}


def _distance(batch: Batch) -> Tensor | None:
    """Return the distance in rows from each text up to its original; None if all are originals."""
    distances = [batch[column] for column in (ADVERSARIAL, COPY) if column in batch]
    return torch.stack(distances).sum(0) if distances else None


def mapped_layers(
    layers: str | tuple[int, ...], student: int, teacher: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return which student layers learn from which teacher layers; 0 is the embeddings.

    Args:
        layers: `even`, `last`, or the teacher's layer for each of the student's.
        student: The student's number of layers.
        teacher: The teacher's number of layers.

    Raises:
        TombolaError: If the list does not fit the models.
    """
    if layers == "last":
        return (student,), (teacher,)
    all_layers = tuple(range(1, student + 1))
    if isinstance(layers, str):
        return all_layers, tuple(round(layer * teacher / student) for layer in all_layers)
    if len(layers) != student or not all(0 <= layer <= teacher for layer in layers):
        raise TombolaError(
            f"distill.layers: takes one layer of the teacher (0 to {teacher}) for each of the model's {student} "
            f"layers; not {list(layers)}"
        )
    return all_layers, layers


@contextmanager
def _hidden_states(model: nn.Module) -> Iterator[list[tuple[Tensor, ...]]]:
    """Collect the hidden states of every pass in this context."""
    hidden_states: list[tuple[Tensor, ...]] = []

    def ask(module: nn.Module, arguments: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return arguments, {**options, "output_hidden_states": True}

    def note(module: nn.Module, arguments: Any, output: Mapping[str, Any]) -> None:
        hidden_states.append(output["hidden_states"])

    hooks = (model.register_forward_pre_hook(ask, with_kwargs=True), model.register_forward_hook(note))
    try:
        yield hidden_states
    finally:
        for hook in hooks:
            hook.remove()
