"""Attack in the loop: add adversarial examples of the current model to the training data, epoch by epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator

from tombola.attacks.base import Attack
from tombola.attacks.deepwordbug import DeepWordBug
from tombola.foundations.seeds import numbered_seed
from tombola.objectives import Objective
from tombola.objectives.settings import Adversary, adversary

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedModel

    from tombola.augmentations.live import LiveTexts, Texts
    from tombola.foundations.hardware import Precision


IN_SEARCH = (
    "train.adversary: attack only works when weights are trained, but this search trains gates: set "
    "search.train.adversary to null, freelb, pgd or swaps, or train the weights too (search.weights: true)"
)


class AttackAdversary(Adversary):
    """Settings of an attack in the loop."""

    kind: Literal["attack"] = "attack"
    recipe: Attack = Field(
        DeepWordBug(),
        description="the attack, by name or with settings",
        json_schema_extra={"default": "deepwordbug"},
    )
    share: float = Field(
        0.25, gt=0, le=1, description="share of the training examples to attack, a new sample each time"
    )
    every: int = Field(1, gt=0, description="attack at the start of every n-th epoch")
    after: int = Field(
        0,
        ge=0,
        description="epochs to train before the first attack; attacks on a model that has just been cut teach little",
    )
    query_budget: int | None = Field(None, gt=0, description="maximum queries per example")

    @field_validator("recipe")
    @classmethod
    def _check_recipe(cls, recipe: Attack) -> Attack:
        if recipe.name == "bert_attack":
            raise ValueError(
                "bert_attack needs a masked language model, which is not available in training; choose another attack"
            )
        return recipe


@adversary(AttackAdversary)
def attack_in_the_loop(inner: Objective, settings: AttackAdversary) -> Objective:
    """Attack in the loop: train on successful adversarial texts of the current model, with their labels."""
    return inner  # only the data changes


def adversarial_texts(
    model: PreTrainedModel,
    data: LiveTexts,
    settings: AttackAdversary,
    *,
    epoch: int,
    seed: int,
    precision: Precision,
    journal: Path,
) -> dict[int, Texts]:
    """Attack a random fraction of the data, and return the texts that fool the model, by example index.

    Args:
        model: The current model.
        data: The training data, whose tokenizer the attack uses.
        settings: The attack and the fraction of examples.
        epoch: The epoch, which determines the sample.
        seed: The seed of the training.
        precision: The arithmetic of the passes.
        journal: The file of finished examples, so that a killed attack resumes.
    """
    import numpy as np

    from tombola.attacks.resources import Resources
    from tombola.attacks.run import attack

    assert data.split is not None
    assert data.tokenizer is not None
    drawn = numbered_seed(seed, epoch + 1)
    count = max(1, round(settings.share * len(data.split)))
    chosen = sorted(np.random.default_rng(drawn).permutation(len(data.split))[:count].tolist())
    similar = "min_similarity" in type(settings.recipe).model_fields
    language = data.split.task.language
    report = attack(
        model,
        data.tokenizer,
        data.split.select(chosen),
        settings.recipe,
        seed=drawn,
        query_budget=settings.query_budget,
        resources=Resources(language=language) if similar else Resources(encoder=None, language=language),
        max_length=data.max_length,
        precision=precision,
        resume=journal,
    )
    return {chosen[example.index]: example.perturbed_text.columns for example in report.of("Successful")}
