"""The settings of a training run. The defaults are BERT-Tickets' for GLUE."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from tombola.augmentations import AugmentSettings
from tombola.foundations.settings import Settings
from tombola.objectives.cross_entropy import CrossEntropyLoss
from tombola.objectives.distillation import Distill
from tombola.objectives.settings import Adversary, LossSettings
from tombola.training.selective.settings import Selection

DEVICE = (
    "There is none to set: the GPU is taken if there is one; CUDA_VISIBLE_DEVICES=1 before the command chooses it, and "
    "CUDA_VISIBLE_DEVICES= hides it."
)
"""The hint for users who look for a device setting."""


class TrainSettings(Settings):
    """How to train a model. Everything but checkpoint frequency and reporting affects the result."""

    unhashed: ClassVar[frozenset[str]] = frozenset({"checkpoint_minutes", "report_to"})
    hints: ClassVar[dict[str, str]] = {
        "device": DEVICE,
        "lr": "Write it as learning_rate.",
        "num_train_epochs": "Write it as epochs.",
        "max_steps": "Write it as steps.",
        "per_device_train_batch_size": "Write it as batch_size.",
        "gradient_accumulation_steps": "Write it as accumulate.",
        "max_seq_length": "Write it as max_length.",
        "max_grad_norm": "Write it as clip.",
        "warmup_ratio": "Write it as warmup, below 1.",
        "warmup_steps": "Write it as warmup, 1 or more.",
        "fp16": "Write it as precision=fp16, at the top of the recipe.",
        "bf16": "Write it as precision=bf16, at the top of the recipe.",
        "seed": "Write it as seed, at the top of the recipe.",
        "early_stopping": "evaluate.best=holdout with data.holdout=0.1 keeps the model of the best epoch.",
    }

    epochs: float = Field(
        3.0, ge=0, description="passes over the training data; may be a fraction, or 0: no training"
    )
    steps: int | None = Field(None, gt=0, description="number of optimizer steps, in place of epochs")
    learning_rate: float = Field(2e-5, gt=0, description="the highest learning rate of the schedule")
    batch_size: int = Field(32, gt=0, description="examples in one forward pass on one device")
    accumulate: int = Field(1, gt=0, description="batches whose gradients make one optimizer step")
    weight_decay: float = Field(0.0, ge=0, description="decoupled; never on biases and norms")
    warmup: float = Field(0.0, ge=0, description="below 1 a share of all steps, else a number of steps")
    schedule: Literal["linear", "constant", "cosine"] = Field("linear", description="after the warm-up")
    optimizer: Literal["adamw", "adamax"] = "adamw"
    betas: tuple[float, float] = Field((0.9, 0.999), description="decay of the optimizer's two moments")
    epsilon: float = Field(1e-8, gt=0)
    bias_correction: bool = Field(
        True,
        description="adamax: divide out the first moment's start at zero; false as Super Tickets released",
    )
    clip: float = Field(1.0, ge=0, description="largest norm of the gradient; 0 does not clip")
    clip_per: Literal["all", "tensor"] = Field(
        "all", description="the norm of all gradients together, or of each tensor by itself"
    )
    dropout: float | None = Field(None, ge=0, lt=1, description="in every dropout; else the model's own")
    head_dropout: float | None = Field(
        None, ge=0, lt=1, description="in the task head alone; else as everywhere"
    )
    loss: LossSettings = Field(CrossEntropyLoss(), description="what is minimised on each example")
    adversary: Adversary | None = Field(
        None, description="raise the loss: perturb the word embeddings, or attack texts"
    )
    r_drop: float | None = Field(
        None, gt=0, description="weight of the divergence between two dropout passes (R-Drop)"
    )
    augment: AugmentSettings | None = Field(
        None, description="change the training texts anew in every epoch, as their labels allow"
    )
    distill: Distill | None = Field(None, description="learn from a teacher's outputs besides the labels")
    select: Selection | None = Field(None, description="update only robust weights (ROSE)")
    max_length: int = Field(128, gt=2, description="tokens of an example; the rest is cut off")
    group_by_length: bool = Field(
        True,
        description="examples of like length share a batch, which pads less; false draws batches uniformly, as the "
        "published systems do",
    )
    checkpoint_minutes: float = Field(10.0, ge=0, description="time between two checkpoints")
    report_to: tuple[str, ...] = Field((), description="trackers known to transformers, e.g. tensorboard")

    def training_part(self) -> "TrainSettings":
        """Return these settings without the fields of subclasses."""
        if type(self) is TrainSettings:
            return self
        return TrainSettings.model_construct(
            **{name: getattr(self, name) for name in TrainSettings.model_fields}
        )

    @model_validator(mode="after")
    def _bias_correction_is_adamax(self) -> Self:
        if not self.bias_correction and self.optimizer != "adamax":
            raise ValueError(
                f"bias_correction: false is for optimizer: adamax; {self.optimizer} always corrects: leave it out"
            )
        return self

    @model_validator(mode="after")
    def _selective_updates_are_adamw(self) -> Self:
        if self.select is not None and self.optimizer != "adamw":
            raise ValueError(f"select works inside AdamW: leave out select, or optimizer={self.optimizer}")
        return self
