"""The sections of a recipe: data, draw, retraining, evaluation, attacks and measurements."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt, field_validator

from tombola.attacks.base import Attack
from tombola.attacks.textfooler import TextFooler
from tombola.foundations.settings import Settings
from tombola.models.controls import Control
from tombola.recipe.drawing import DrawSettings
from tombola.tasks.mixing import Mixed
from tombola.tasks.synthetic import SyntheticBias
from tombola.training.settings import TrainSettings

__all__ = [
    "AttackSettings",
    "DataSettings",
    "DrawSettings",
    "EvaluateSettings",
    "MeasureSettings",
    "RetrainSettings",
    "WantedPrecision",
]

Runtime = Literal["transformers", "onnx", "onnx_int8"]
WantedPrecision = Literal["auto", "fp32", "bf16", "fp16"]


class DataSettings(Settings):
    """Where the data is, and how much of it to use."""

    folder: str | None = Field(
        None, description="root of the local data folders; by default TOMBOLA_DATA, or the hub"
    )
    train: int | None = Field(None, gt=0, description="size of a random subset of the training data")
    holdout: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="share of the training data to hold out for evaluation, as the split `holdout`",
    )
    evaluation: int | None = Field(None, gt=0, description="size of a random subset of each evaluation set")
    seed: int = Field(0, ge=0, description="seed of the random subsets")
    synthetic_bias: SyntheticBias | None = Field(
        None, description="a prefix that gives the label away in training and misleads in testing"
    )
    mix: tuple[Mixed, ...] = Field((), description="other data added to all training, e.g. {on: hans/train}")
    task_settings: dict[str, bool | int | float | str | None] = Field(
        {}, description="settings of the kind of task, overriding the task file's, e.g. {doc_stride: 64}"
    )

    def __hash__(self) -> int:
        """Hash everything but the mapping, so that default settings are not copied for every cell of a study."""
        return hash(tuple(value for name, value in self if name != "task_settings"))


class RetrainSettings(TrainSettings):
    """The training of the drawn ticket. Unset keys are inherited from `train`."""

    start: Literal["rewind", "pretrained", "finetuned", "last_round", "searched"] = Field(
        "rewind",
        description="weights under the mask: those that the search rewinds to (usually the pre-trained ones), the "
        "pre-trained or fine-tuned ones, those that the mask was found on, or those that the search trained "
        "(search.weights: true)",
    )
    control: Control | None = Field(
        None, description="control: property to destroy before training, which shows whether it matters"
    )
    shrink: bool = Field(
        False,
        description="cut the ticket out of its starting weights first, and train the small model; false: keep all "
        "weights, and hold the removed ones at zero",
    )


class EvaluateSettings(Settings):
    """The data to score the result on: splits of the task, or other tasks as `task` or `task/split`."""

    on: tuple[str, ...] = Field(
        ("validation",), description="splits, other tasks or changed texts: test, hans/test, validation+typos"
    )
    every: Literal["epoch"] | Annotated[int, Field(gt=0)] | None = Field(
        None,
        description="also score the model during its last training: after each epoch, or at this interval of steps; "
        "results and report contain the curves",
    )
    best: str | None = Field(
        None,
        description="keep the model of the epoch (or step, see `every`) with the best score on this data set, such as "
        "`holdout`, instead of the last; it must not be one of the data sets in `on`",
    )


class AttackSettings(Settings):
    """The attacks to run on the result."""

    recipes: tuple[Attack, ...] = Field(
        (TextFooler(),),
        min_length=1,
        description="attacks by name, or with settings: {name: textfooler, min_similarity: 0.7}",
        json_schema_extra={"default": ["textfooler"]},
    )
    on: str = Field("validation", description="data set to sample from, as in evaluate.on")
    n: int = Field(200, gt=0, description="examples in the class-balanced random sample")
    seed: int = Field(0, ge=0, description="seed of the sample")
    query_budget: int | None = Field(None, gt=0, description="maximum queries per example")
    vectors: str | None = Field(
        None, description="file of word vectors, for synonyms; by default the built-in ones"
    )
    mlm: str | None = Field(None, description="masked language model, for bert_attack")
    encoder: str | None = Field(
        None, description="sentence encoder; by default the built-in one, for English texts only"
    )
    lexicon: str | None = Field(
        None,
        description="file of words, tags and synonyms; by default the built-in one, for English texts only",
    )
    every_epoch: bool = Field(
        False, description="attack the model after every epoch, for a curve of its robustness"
    )

    def chosen(self) -> dict[str, Attack]:
        """Return the attacks by their names in results."""
        return {attack.label: attack for attack in self.recipes}

    @field_validator("recipes")
    @classmethod
    def _check_labels(cls, recipes: tuple[Attack, ...]) -> tuple[Attack, ...]:
        labels = [attack.label for attack in recipes]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"two attacks are called {label!r}: rename one of them with `called`")
        return recipes


class MeasureSettings(Settings):
    """How to measure the size and speed of the result; it and the dense model are timed in turns."""

    batch_sizes: tuple[PositiveInt, ...] = Field((1, 32), min_length=1, description="texts per forward pass")
    length: int | None = Field(
        None, gt=0, description="tokens per text; by default the task's texts at their own lengths"
    )
    threads: int | None = Field(
        None, gt=0, description="threads per forward pass; by default PyTorch's setting"
    )
    device: str = Field("cpu", description="device to time models on: cpu, or an accelerator such as cuda")
