"""The part of a builder that plans trainings: of weights, and of gates in a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tombola.attacks.in_the_loop import AttackAdversary
from tombola.attacks.resources import ENCODER, NEIGHBOURS, SWAP_TABLE, Resources
from tombola.augmentations import AugmentSettings
from tombola.augmentations.synonyms import uses_neighbours
from tombola.bias.file import BiasFile
from tombola.defenses.spelling import Spelling
from tombola.errors import RecipeError
from tombola.foundations.caching import shared
from tombola.foundations.hardware import Precision
from tombola.models.controls import Control
from tombola.objectives.cross_entropy import CrossEntropyLoss
from tombola.objectives.swaps import SwapAdversary
from tombola.pipeline.limits import (
    BY_HEAD,
    check_attacked,
    check_limits,
    check_loss,
    check_texts,
    why_fixed,
)
from tombola.pipeline.named_data import find_data
from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.base import MaskStage, ModelStage
from tombola.pipeline.stages.bias import Bias
from tombola.pipeline.stages.defend import Defend
from tombola.pipeline.stages.search import SearchStage
from tombola.pipeline.stages.teacher import Teacher
from tombola.pipeline.stages.train import Train
from tombola.recipe.recipe import Recipe
from tombola.search.learned import Learned
from tombola.tasks import kind_of
from tombola.tasks.mixing import Mixed
from tombola.tasks.targets import all_targets
from tombola.training.settings import TrainSettings


class TrainingBuilder:
    """Fills in what all stages of a recipe have in common, and plans its trainings.

    Args:
        recipe: The recipe of one cell.
        precision: The recipe's precision, with `auto` resolved for this machine.
    """

    def __init__(self, recipe: Recipe, precision: Precision) -> None:
        self.recipe = recipe
        self.precision = precision
        self.model = ModelSource.find(recipe.model, recipe.pooler)
        self.data = self._training_data(recipe.data.mix)
        check_limits(recipe, self.model, self.data)
        self.defend = self._defend()

    def split(
        self, on: str, limit: int | None, mix: Sequence[Mixed] = (), predicted_in: str | None = None
    ) -> DataSource:
        """Find the data that `on` refers to: a split of the recipe's task, or `task` or `task/split` of another."""
        return shared(find_data, self.recipe.data, self.recipe.task, on, limit, mix, predicted_in)

    def _training_data(self, mix: Sequence[Mixed]) -> DataSource:
        """Find the training data, without the examples that the bias model's file lacks, if those are dropped."""
        bias = self.recipe.bias
        only = bias.path if isinstance(bias, BiasFile) and bias.missing == "drop" else None
        return self.split("train", self.recipe.data.train, mix, predicted_in=only)

    def _defend(self) -> Defend | None:
        """Plan the recipe's defense, fitted to its training texts."""
        if not self.recipe.defend:
            return None
        task = self.data.definition
        if reason := why_fixed(task):
            raise RecipeError(f"defend: {reason}, so the texts cannot be changed: leave out `defend`")
        english = any(
            isinstance(defense, Spelling) and defense.dictionary == "english"
            for defense in self.recipe.defend
        )
        if english and not task.english:
            raise RecipeError(
                f"defend: the spelling dictionary is English, but {task.name} is in {task.language!r}: use {{kind: "
                "spelling, dictionary: null}, which only knows the words of the training texts"
            )
        return shared(Defend, data=self.data, defend=self.recipe.defend)

    def train(
        self,
        mask: MaskStage | None = None,
        start: ModelStage[Any] | None = None,
        head: ModelStage[Any] | None = None,
        stop_at: float | None = None,
        fresh_head: int = 0,
        settings: TrainSettings | None = None,
        length: float = 1.0,
        control: Control | None = None,
        keep_epochs: bool = False,
        last: bool = False,
    ) -> Train:
        """Plan a training on the recipe's task; `evaluate.every` and `evaluate.best` apply to the last one."""
        if control is not None:
            control.check(self.model.config())
        chosen = settings or self.recipe.train
        settings = shared(_training_on, self.data, chosen, length, self.recipe.train)
        return shared(
            Train,
            model=self.model,
            data=self.data,
            train=settings,
            seed=self.recipe.seed,
            precision=self.precision,
            mask=mask,
            start=start,
            head=head,
            bias=self._bias(settings, self.data),
            teacher=self._teacher(settings, self.data),
            distill_from=self._distill_from(chosen),
            attack_encoder=_attack_encoder(settings),
            neighbours=_neighbours(settings),
            swap_table=_swap_table(settings),
            defend=self.defend,
            fresh_head=fresh_head,
            stop_at=stop_at,
            control=control,
            keep_epochs=keep_epochs,
            **(self._watched() if last else {}),
        )

    def _watched(self) -> dict[str, Any]:
        """Return what to score during the last training, if anything."""
        evaluate, limit = self.recipe.evaluate, self.recipe.data.evaluation
        if evaluate.every is None and evaluate.best is None:
            return {}
        watched = all_targets(evaluate.on, self.recipe.task) if evaluate.every is not None else []
        return {
            "watched": tuple(self.split(on, limit) for on in watched),
            "choose": self.split(evaluate.best, limit) if evaluate.best is not None else None,
            "score_every": evaluate.every or "epoch",
        }

    def _bias(self, settings: TrainSettings, data: DataSource) -> Bias | None:
        """Plan the bias model's predictions, if the loss needs them."""
        if not settings.loss.needs_bias:
            return None
        task = data.definition
        if not task.single_label:
            raise RecipeError(
                f"loss: {settings.loss.kind} needs a task with one label per text, but {task.name} is a {task.kind} "
                "task; use loss: {kind: cross_entropy}"
            )
        if not kind_of(task).label_logits:
            raise RecipeError(
                f"loss: {settings.loss.kind} needs a classification head, but {task.name} is scored by likelihood: "
                f"{BY_HEAD}"
            )
        assert self.recipe.bias is not None, "the recipe was checked to have a bias model"
        return Bias.of(self.recipe.bias, data, self.recipe.seed)

    def _teacher(self, settings: TrainSettings, data: DataSource) -> Teacher | None:
        """Plan the predictions of a plainly fine-tuned model, if the loss needs them."""
        if not settings.loss.needs_teacher:
            return None
        plain = shared(_plain, self.recipe.train)
        return shared(
            Teacher,
            model=self.train(settings=plain),
            data=data,
            max_length=plain.max_length,
            precision=self.precision,
        )

    def _distill_from(self, settings: TrainSettings) -> ModelStage[Any] | ModelSource | None:
        """Return the model to distil from: the recipe's teacher, or its own plain fine-tuning."""
        if settings.distill is None:
            return None
        if settings.distill.teacher is not None:
            return ModelSource.find(settings.distill.teacher)
        return self.train(settings=shared(_plain, self.recipe.train))

    def learn(
        self, settings: Learned, sparsity: float | None, start: ModelStage[Any] | None = None
    ) -> SearchStage:
        """Plan a search for scores by gradient descent, at one sparsity if they depend on it."""
        data = self._training_data(settings.mix) if settings.mix else self.data
        check_loss(settings.train, data)
        check_texts(settings.train, data)
        check_attacked(settings.train, data)
        distill_from = self._distill_from(settings.train)
        settings = shared(_without_search_teacher, settings)
        if settings.weights and settings.weights_learning_rate is None:
            rate = self.recipe.train.learning_rate
            settings = settings.model_copy(update={"weights_learning_rate": rate})
        return shared(
            SearchStage,
            model=self.model,
            data=data,
            search=self._stage_settings(settings),
            seed=self.recipe.seed,
            precision=self.precision,
            start=start,
            bias=self._bias(settings.train, data),
            teacher=self._teacher(settings.train, data),
            distill_from=distill_from,
            attack_encoder=_attack_encoder(settings.train),
            neighbours=_neighbours(settings.train),
            swap_table=_swap_table(settings.train),
            defend=self.defend,
            sparsity=sparsity,
            scope=self.recipe.scope if sparsity is not None else None,
            pattern=self.recipe.draw.pattern if sparsity is not None else None,
        )

    def _stage_settings(self, settings: Any) -> Any:
        return shared(_stage_settings, settings, self.recipe.train.augment)


def _attack_encoder(settings: TrainSettings) -> ModelSource | None:
    """Return the sentence encoder of an adversary, which measures how similar texts or words are."""
    uses = isinstance(settings.adversary, AttackAdversary | SwapAdversary)
    return ModelSource.find(ENCODER) if uses else None


def augments_by_neighbours(augment: AugmentSettings | None) -> bool:
    """Return whether an augmentation looks words up in the bundled table of neighbours."""
    return augment is not None and any(map(uses_neighbours, augment.of))


def _neighbours(settings: TrainSettings) -> int | None:
    """Return the version of the bundled word neighbours, if an augmentation or an adversary uses them."""
    adversary = settings.adversary
    if augments_by_neighbours(settings.augment) or isinstance(adversary, SwapAdversary):
        return NEIGHBOURS
    return (
        Resources().bundled_neighbours(adversary.recipe) if isinstance(adversary, AttackAdversary) else None
    )


def _swap_table(settings: TrainSettings) -> int | None:
    """Return the version of the table of word swaps, if the adversary uses it."""
    return SWAP_TABLE if isinstance(settings.adversary, SwapAdversary) else None


def _training_on(
    data: DataSource, settings: TrainSettings, length: float, usual: TrainSettings
) -> TrainSettings:
    """Return the settings of a training on some data, for a share of its epochs or steps.

    A retraining equal to the `usual` training gets the same object, so that their stages are shared.
    """
    check_loss(settings, data)
    check_texts(settings, data)
    check_attacked(settings, data)
    training = _without_teacher(_shortened(settings.training_part(), length))
    return usual if training.model_dump_json() == usual.model_dump_json() else training


def _shortened(settings: TrainSettings, length: float) -> TrainSettings:
    """Return the same training for a share of its epochs or steps; at least one step is left."""
    if length == 1:
        return settings
    if settings.steps is not None:
        return settings.model_copy(update={"steps": max(1, round(settings.steps * length))})
    return settings.model_copy(update={"epochs": settings.epochs * length})


def _plain(settings: TrainSettings) -> TrainSettings:
    """Return the same training with plain cross-entropy on the labels and nothing else."""
    extras = ("adversary", "r_drop", "augment", "distill", "select")
    return settings.model_copy(update={"loss": CrossEntropyLoss(), **dict.fromkeys(extras)})


def _without_teacher(settings: TrainSettings) -> TrainSettings:
    """Return the settings without the teacher's name: the stage refers to the model itself, wherever it is."""
    if settings.distill is None or settings.distill.teacher is None:
        return settings
    return settings.model_copy(update={"distill": settings.distill.model_copy(update={"teacher": None})})


def _without_search_teacher(settings: Learned) -> Learned:
    """Return the same search without the teacher's name."""
    return settings.model_copy(update={"train": _without_teacher(settings.train)})


def _stage_settings(settings: Any, augment: AugmentSettings | None) -> Any:
    """Return the search's settings for a stage.

    They exclude what other stages define (the task of a transfer, the training of rounds), and include the
    augmentation if it is inherited from the training.
    """
    changes: dict[str, Any] = {"task": None} if settings.task is not None else {}
    if not isinstance(settings, Learned) and getattr(settings, "train", None) is not None:
        changes["train"] = None
    if getattr(settings, "inputs", "clean") != "clean" and settings.augment is None and augment is not None:
        changes["augment"] = augment.of_every_text()
    return settings.model_copy(update=changes) if changes else settings
