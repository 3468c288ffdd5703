"""The settings of a training run. The defaults are BERT-Tickets' for GLUE."""

import math
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tombola.attacks.in_the_loop import AttackAdversary
from tombola.augmentations import AugmentSettings
from tombola.foundations.settings import Settings
from tombola.objectives.cross_entropy import CrossEntropyLoss
from tombola.objectives.distillation import Distill
from tombola.objectives.settings import Adversary, LossSettings
from tombola.training.selective.settings import Selection

DecayRate = Annotated[float, Field(ge=0, lt=1)]

DEVICE = (
    "The device cannot be set: a GPU is used if there is one. To choose one, run the command with "
    "CUDA_VISIBLE_DEVICES=1; to use none, with CUDA_VISIBLE_DEVICES=."
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
        "early_stopping": "To keep the model of the best epoch, set evaluate.best=holdout and data.holdout=0.1.",
    }

    epochs: float = Field(
        3.0, ge=0, description="passes over the training data, may be fractional; 0: no training"
    )
    steps: int | None = Field(None, gt=0, description="number of optimizer steps, instead of epochs")
    learning_rate: float = Field(2e-5, gt=0, description="peak learning rate of the schedule")
    batch_size: int = Field(32, gt=0, description="examples per forward pass and device")
    accumulate: int = Field(1, gt=0, description="batches per optimizer step (gradient accumulation)")
    weight_decay: float = Field(0.0, ge=0, description="decoupled weight decay; biases and norms have none")
    warmup: float = Field(
        0.0, ge=0, description="warm-up steps: below 1 a share of all steps, else their number"
    )
    schedule: Literal["linear", "constant", "cosine"] = Field(
        "linear", description="learning-rate schedule after the warm-up"
    )
    optimizer: Literal["adamw", "adamax"] = Field("adamw", description="update rule")
    betas: tuple[DecayRate, DecayRate] = Field(
        (0.9, 0.999), description="decay rates of the optimizer's two moments"
    )
    epsilon: float = Field(
        1e-8, gt=0, description="term in the optimizer's denominator, against division by zero"
    )
    bias_correction: bool = Field(
        True,
        description="adamax: correct the first moment's bias towards zero; false as in Super Tickets' code",
    )
    clip: float = Field(1.0, ge=0, description="maximum gradient norm; 0: no clipping")
    clip_per: Literal["all", "tensor"] = Field(
        "all", description="clip the norm of all gradients together, or that of each tensor"
    )
    dropout: float | None = Field(
        None, ge=0, lt=1, description="probability of every dropout; by default the model's own"
    )
    head_dropout: float | None = Field(
        None, ge=0, lt=1, description="dropout of the task head alone; by default as everywhere"
    )
    loss: LossSettings = Field(CrossEntropyLoss(), description="loss of each example")
    adversary: Adversary | None = Field(
        None,
        description="adversarial training: perturb the word embeddings, replace words, or attack the texts",
    )
    r_drop: float | None = Field(
        None, gt=0, description="weight of the divergence between two dropout passes (R-Drop)"
    )
    augment: AugmentSettings | None = Field(
        None, description="augmentations of the training texts, sampled again in every epoch"
    )
    distill: Distill | None = Field(
        None, description="distillation: learn from a teacher's outputs as well as from the labels"
    )
    select: Selection | None = Field(None, description="update only robust weights (ROSE)")
    max_length: int = Field(128, gt=2, description="maximum tokens per example; longer ones are truncated")
    group_by_length: bool = Field(
        True,
        description="batch examples of similar length, which saves padding; false: uniformly random batches, as the "
        "published systems draw them",
    )
    checkpoint_minutes: float = Field(10.0, ge=0, description="minutes between checkpoints")
    report_to: tuple[str, ...] = Field((), description="trackers supported by transformers, e.g. tensorboard")

    @property
    def two_passes(self) -> str | None:
        """The key of the setting that compares two dropout passes of each batch, if any."""
        if self.select is not None and self.select.two_passes:
            return "select"
        return "r_drop" if self.r_drop is not None else None

    def training_part(self) -> "TrainSettings":
        """Return these settings without the fields of subclasses."""
        if type(self) is TrainSettings:
            return self
        return TrainSettings.model_construct(
            **{name: getattr(self, name) for name in TrainSettings.model_fields}
        )

    @model_validator(mode="after")
    def _check_bias_correction(self) -> Self:
        if not self.bias_correction and self.optimizer != "adamax":
            raise ValueError(
                f"bias_correction: false only works with optimizer: adamax; leave it out for {self.optimizer}"
            )
        return self

    @model_validator(mode="after")
    def _clips_something(self) -> Self:
        if self.clip_per != "all" and not self.clip:
            raise ValueError(f"clip_per: {self.clip_per} has no effect with clip: 0; leave it out")
        return self

    @model_validator(mode="after")
    def _attacks_in_time(self) -> Self:
        adversary = self.adversary
        if isinstance(adversary, AttackAdversary) and self.steps is None and self.epochs:
            first, last = adversary.after + adversary.every, math.ceil(self.epochs)
            if first > last:
                raise ValueError(
                    f"adversary: attacks first at the start of epoch {first} (after + every), but the training has "
                    f"{last}: attack earlier, or train longer"
                )
        return self

    @model_validator(mode="after")
    def _learns_from_labels(self) -> Self:
        if self.distill is not None and self.distill.weight == 1 and self.loss != CrossEntropyLoss():
            raise ValueError(
                "loss: has no effect with distill.weight: 1, which leaves the labels out; use a lower weight, or the "
                "default loss"
            )
        return self

    @model_validator(mode="after")
    def _check_selective_updates(self) -> Self:
        if self.select is not None and self.optimizer != "adamw":
            raise ValueError(f"select only works with AdamW: remove select, or optimizer={self.optimizer}")
        return self
