"""Builds the stages of one recipe. Equal calls give stages with equal keys, of which the store runs one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tombola.attacks.base import Attack as AttackRecipe
from tombola.attacks.in_the_loop import AttackAdversary
from tombola.attacks.resources import ENCODER
from tombola.augmentations import AugmentSettings
from tombola.bias.file import BiasFile
from tombola.errors import RecipeError
from tombola.foundations.hardware import Precision
from tombola.models.controls import Control
from tombola.objectives.cross_entropy import CrossEntropyLoss
from tombola.pipeline.references import DataSource, FileSource, ModelSource, find_data, find_texts
from tombola.pipeline.stages.attack import Attack
from tombola.pipeline.stages.base import MaskStage, ModelStage, ScoreStage, cut_of
from tombola.pipeline.stages.bias import Bias
from tombola.pipeline.stages.defend import Defend
from tombola.pipeline.stages.draw import Draw
from tombola.pipeline.stages.evaluate import Evaluate
from tombola.pipeline.stages.fit import Fit
from tombola.pipeline.stages.given import Base, Combine, Given, find_mask
from tombola.pipeline.stages.latency import Latency
from tombola.pipeline.stages.measure import Measure
from tombola.pipeline.stages.perturb import Perturb
from tombola.pipeline.stages.score import Score
from tombola.pipeline.stages.search import Search
from tombola.pipeline.stages.shrink import Shrink
from tombola.pipeline.stages.teacher import Teacher
from tombola.pipeline.stages.train import Train
from tombola.recipe.drawing import TIMED
from tombola.recipe.recipe import Recipe
from tombola.search import SearchSettings
from tombola.search.learned import Learned
from tombola.tasks import kind_of
from tombola.tasks.mixing import Mixed
from tombola.tasks.targets import all_targets
from tombola.training.settings import TrainSettings


class StageBuilder:
    """Fills in what all stages of a recipe have in common: model, data, seed and precision.

    Args:
        recipe: The recipe of one cell.
        precision: What `precision: auto` came to on this machine.
    """

    def __init__(self, recipe: Recipe, precision: Precision) -> None:
        self.recipe = recipe
        self.precision = precision
        self.model = ModelSource.find(recipe.model, recipe.pooler)
        self.data = self._training_data(recipe.data.mix)
        self.defend = self._defend()

    def split(
        self, on: str, limit: int | None, mix: Sequence[Mixed] = (), predicted_in: str | None = None
    ) -> DataSource:
        """The data that `on` means: a split of the recipe's task, or `task` or `task/split` of another."""
        return find_data(self.recipe.data, self.recipe.task, on, limit, mix, predicted_in)

    def _training_data(self, mix: Sequence[Mixed]) -> DataSource:
        """The training data, without what the bias model's file leaves out."""
        bias = self.recipe.bias
        only = bias.path if isinstance(bias, BiasFile) and bias.missing == "drop" else None
        return self.split("train", self.recipe.data.train, mix, predicted_in=only)

    def _defend(self) -> Defend | None:
        """The defense of the recipe, fitted to its training texts."""
        if not self.recipe.defend:
            return None
        task = self.data.definition
        if not kind_of(task).reads_whole_texts:
            raise RecipeError(
                f"defend: {task.name} is a {task.kind} task, whose labels belong to places in the texts, so that these "
                "must stay as they are: leave `defend` out"
            )
        return Defend(data=self.data, defend=self.recipe.defend)

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
        """A training on the recipe's task; the last one is what `evaluate` watches and chooses from."""
        settings = _shortened((settings or self.recipe.train).training_part(), length)
        check_texts(settings, self.data)
        check_attacked(settings, self.data)
        distill_from, settings = self._distill_from(settings), _without_teacher(settings)
        return Train(
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
            distill_from=distill_from,
            defend=self.defend,
            fresh_head=fresh_head,
            stop_at=stop_at,
            control=control,
            keep_epochs=keep_epochs,
            **(self._watched() if last else {}),
        )

    def _watched(self) -> dict[str, Any]:
        """What is scored while the last training goes on."""
        evaluate, limit = self.recipe.evaluate, self.recipe.data.evaluation
        watched = all_targets(evaluate.on, self.recipe.task) if evaluate.every is not None else []
        return {
            "watched": tuple(self.split(on, limit) for on in watched),
            "choose": self.split(evaluate.best, limit) if evaluate.best is not None else None,
            "score_every": evaluate.every or "epoch",
        }

    def _bias(self, settings: TrainSettings, data: DataSource) -> Bias | None:
        """The bias model's predictions, where the loss reads them."""
        if not settings.loss.needs_bias:
            return None
        task = data.definition
        if not task.single_label:
            raise RecipeError(
                f"loss: {settings.loss.kind} is for tasks with one label per text, and {task.name} is a {task.kind} "
                "task; use loss: {kind: cross_entropy}"
            )
        assert self.recipe.bias is not None, "the recipe was checked to have a bias model"
        return Bias.of(self.recipe.bias, data, self.recipe.seed)

    def _teacher(self, settings: TrainSettings, data: DataSource) -> Teacher | None:
        """The predictions of a plainly fine-tuned model, where the loss reads them."""
        if not settings.loss.needs_teacher:
            return None
        plain = self._plain()
        return Teacher(
            model=self.train(settings=plain), data=data, max_length=plain.max_length, precision=self.precision
        )

    def _plain(self) -> TrainSettings:
        """The recipe's fine-tuning without anything but its loss on the labels."""
        extras = ("adversary", "r_drop", "augment", "distill", "select")
        return self.recipe.train.model_copy(update={"loss": CrossEntropyLoss(), **dict.fromkeys(extras)})

    def _distill_from(self, settings: TrainSettings) -> ModelStage[Any] | ModelSource | None:
        """The model to distil from: the one that is named, or the recipe's own plain fine-tuning."""
        if settings.distill is None:
            return None
        if settings.distill.teacher is not None:
            return ModelSource.find(settings.distill.teacher)
        return self.train(settings=self._plain())

    def learn(
        self, settings: Learned, sparsity: float | None, start: ModelStage[Any] | None = None
    ) -> Search:
        """Scores learned by gradient descent, at one sparsity if they depend on it."""
        data = self._training_data(settings.mix) if settings.mix else self.data
        check_texts(settings.train, data)
        distill_from = self._distill_from(settings.train)
        settings = settings.model_copy(update={"train": _without_teacher(settings.train)})
        return Search(
            model=self.model,
            data=data,
            search=self._own(settings),
            seed=self.recipe.seed,
            precision=self.precision,
            start=start,
            bias=self._bias(settings.train, data),
            teacher=self._teacher(settings.train, data),
            distill_from=distill_from,
            defend=self.defend,
            sparsity=sparsity,
            scope=self.recipe.draw.scope if sparsity is not None else None,
        )

    def score(self, scorer: SearchSettings, of: ModelStage[Any] | None = None) -> Score:
        """Scores of a model's units, for draws at any sparsity."""
        return Score(
            model=self.model,
            data=self.data,
            search=self._own(scorer),
            seed=self.recipe.seed,
            max_length=self._scored_length(scorer),
            defend=self.defend if scorer.reads_data else None,
            of=of,
        )

    def draw(
        self,
        scorer: SearchSettings,
        sparsity: float,
        of: ModelStage[Any] | None = None,
        within: MaskStage | None = None,
        scores: ScoreStage | None = None,
        progress: float = 1.0,
    ) -> Draw | Fit:
        """A mask drawn from the scores of a model, or from given ones."""
        drawn = self.recipe.draw
        if drawn.target is not None:
            return self._fit(scorer, scores or self.score(scorer, of), within, progress)
        return Draw(
            model=self.model,
            data=self.data,
            search=self._own(scorer),
            sparsity=sparsity if drawn.counts is None else None,
            heads=drawn.heads,
            ffns=drawn.ffns,
            scope=self.recipe.draw.scope,
            seed=self.recipe.seed,
            max_length=self._scored_length(scorer),
            defend=self.defend if scorer.reads_data else None,
            of=of,
            within=within,
            scores=scores,
        )

    @property
    def rounds(self) -> int:
        """In how many steps units are removed."""
        return self.recipe.draw.rounds

    def _fit(
        self, scorer: SearchSettings, scores: ScoreStage, within: MaskStage | None, progress: float
    ) -> Fit:
        """A mask that meets the draw's target."""
        drawn, target = self.recipe.draw, self.recipe.draw.target
        assert target is not None
        return Fit(
            model=self.model,
            data=self.data,
            search=self._own(scorer),
            scores=scores,
            quantity=target.quantity,
            value=target.value,
            layout=drawn.layout,
            multiple=drawn.multiple,
            seed=self.recipe.seed,
            latency=self._latency() if target.quantity in TIMED else None,
            within=within,
            progress=progress,
        )

    def _latency(self) -> Latency:
        """The latency table of the model's geometry on this machine."""
        import torch

        from tombola.foundations.hardware.machine import default_device, device_name, processor

        drawn, on_cpu = self.recipe.draw, default_device() == "cpu"
        kinds = set(self.recipe.search.units.split("+")) if self.recipe.search else set()
        family = self.model.family()
        free_heads = family is not None and family.config is not None and family.config.free_heads
        texts = None
        if drawn.length is None:
            texts = find_texts(self.recipe.data, self.recipe.task, self.recipe.evaluate.on)
        return Latency(
            geometry=self.model.geometry(),
            processor=processor().model if on_cpu else device_name(),
            batch_sizes=drawn.batch_size,
            threads=drawn.threads or torch.get_num_threads(),
            multiple=drawn.multiple,
            length=drawn.length,
            max_length=None if texts is None else self.recipe.train.max_length,
            model=self.model,
            data=texts,
            task=self.data,
            fewer_heads="head" in kinds and (drawn.layout == "free" or free_heads),
            fewer_neurons=bool({"neuron", "ffn"} & kinds),
        )

    def shrink(
        self, mask: MaskStage, of: ModelStage[Any] | None = None, within: MaskStage | None = None
    ) -> Shrink:
        """The small model that a mask cuts out of a model."""
        drawn, search = self.recipe.draw, self.recipe.search
        whole_layers = search is not None and search.units == "layer"
        return Shrink(
            model=self.model,
            data=self.data,
            mask=mask,
            layout="uniform" if whole_layers else drawn.layout,
            seed=self.recipe.seed,
            of=of,
            within=within,
            multiple=drawn.multiple,
        )

    def _own(self, settings: Any) -> Any:
        return _own(settings, self.recipe.train.augment)

    def _scored_length(self, scorer: SearchSettings) -> int | None:
        return self.recipe.train.max_length if scorer.reads_data else None

    def given(self, masks: Sequence[str], combine: Combine, base: Base) -> Given:
        """Masks from files, combined; of the pre-trained model, or of any of the same geometry."""
        files = tuple(find_mask(mask) for mask in masks)
        return Given(model=self.model, data=self.data, masks=files, combine=combine, base=base)

    def perturb(self, mask: MaskStage, share: float) -> Perturb:
        """The mask with a share of its units swapped."""
        return Perturb(mask=mask, share=share, seed=self.recipe.seed)

    def evaluate(
        self,
        on: str,
        model: ModelStage[Any],
        mask: MaskStage | None,
        also_trained: tuple[DataSource, ...] = (),
    ) -> Evaluate:
        """The model's scores on one data set; `also_trained` is what its mask was found on besides."""
        return Evaluate(
            model=model,
            mask=mask,
            data=self.split(on, self.recipe.data.evaluation),
            trained=self.data,
            also_trained=also_trained,
            max_length=self.recipe.train.max_length,
            precision=self.precision,
        )

    def attack(
        self,
        attack: AttackRecipe,
        model: ModelStage[Any],
        mask: MaskStage | None,
        epoch: int | None = None,
    ) -> Attack:
        """One attack on the model, or on what it was after an epoch."""
        settings, task = self.recipe.attack, self.data.definition
        assert settings is not None
        if not task.single_label:
            raise RecipeError(
                f"attack: {task.name} is a {task.kind} task, and attacks are for tasks with one label per text: "
                "leave `attack` out"
            )
        return Attack(
            model=model,
            mask=mask,
            data=self.split(settings.on, None),
            trained=self.data,
            attack=attack,
            n=settings.n,
            seed=settings.seed,
            max_length=self.recipe.train.max_length,
            precision=self.precision,
            query_budget=settings.query_budget,
            vectors=FileSource.find(settings.vectors, "attack.vectors") if settings.vectors else None,
            mlm=ModelSource.find(settings.mlm) if settings.mlm else None,
            encoder=ModelSource.find(ENCODER),
            epoch=epoch,
        )

    def measure(self, model: ModelStage[Any], mask: MaskStage | None) -> Measure:
        """Size and speed of the model, shrunk by its mask."""
        settings = self.recipe.measure
        assert settings is not None
        cut = cut_of(model)
        assert cut is None or isinstance(cut, Shrink)
        if cut is not None:
            mask = None
        if settings.length is not None:
            return Measure(model=model, mask=mask, measure=settings, cut=cut)
        return Measure(
            model=model,
            mask=mask,
            cut=cut,
            measure=settings,
            data=find_texts(self.recipe.data, self.recipe.task, self.recipe.evaluate.on),
            max_length=self.recipe.train.max_length,
        )


def check_texts(settings: TrainSettings, data: DataSource) -> None:
    """Refuse to change texts that labels point into."""
    task = data.definition
    if settings.augment is not None and not kind_of(task).reads_whole_texts:
        raise RecipeError(
            f"augment: {task.name} is a {task.kind} task, whose labels belong to places in the texts, so that these "
            "must stay as they are: leave `augment` out"
        )


def check_attacked(settings: TrainSettings, data: DataSource) -> None:
    """Refuse to attack a model that gives no single label."""
    task = data.definition
    if isinstance(settings.adversary, AttackAdversary) and not task.single_label:
        raise RecipeError(
            f"adversary: {task.name} is a {task.kind} task, and attacks are for tasks with one label per text: take "
            "freelb or pgd"
        )


def _shortened(settings: TrainSettings, length: float) -> TrainSettings:
    """The same training for a share of its epochs or steps, of which at least one is left."""
    if length == 1:
        return settings
    if settings.steps is not None:
        return settings.model_copy(update={"steps": max(1, round(settings.steps * length))})
    return settings.model_copy(update={"epochs": settings.epochs * length})


def _without_teacher(settings: TrainSettings) -> TrainSettings:
    """The settings without the teacher's name: the stage that it is for has the model itself, wherever it lies."""
    if settings.distill is None or settings.distill.teacher is None:
        return settings
    return settings.model_copy(update={"distill": settings.distill.model_copy(update={"teacher": None})})


def _own(settings: Any, augment: AugmentSettings | None) -> Any:
    """The search's settings as a stage needs them.

    Without what other stages say (the task it is transferred from, how rounds are trained), and with how its texts are
    augmented, where that is as in the training.
    """
    changes: dict[str, Any] = {"task": None} if settings.task is not None else {}
    if not isinstance(settings, Learned) and getattr(settings, "train", None) is not None:
        changes["train"] = None
    if getattr(settings, "inputs", "clean") != "clean" and settings.augment is None and augment is not None:
        changes["augment"] = augment.model_copy(update={"consistency": 0.0})
    return settings.model_copy(update=changes) if changes else settings
