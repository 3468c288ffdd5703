"""The road of one recipe: makes its stages. Equal questions give stages with equal keys, so each runs once."""

from collections.abc import Mapping, Sequence
from typing import Any

from tombola.objectives.settings import CrossEntropyLoss
from tombola.recipe import Recipe
from tombola.search import SearchSettings
from tombola.search.learned import Learned
from tombola.settings import Settings
from tombola.stages import kinds
from tombola.stages.attack import vectors_ref
from tombola.stages.bias import bias_refs
from tombola.stages.given import mask_ref
from tombola.stages.sources import data_ref, model_ref
from tombola.store import Ref, Stage
from tombola.tasks.mixing import Mixed
from tombola.tasks.targets import find_target
from tombola.training import TrainSettings


class Road:
    """What a recipe's model, data, seed and precision have in common through all of its stages."""

    def __init__(self, recipe: Recipe, precision: str) -> None:
        self.recipe = recipe
        self.precision = precision
        self.origin = model_ref(recipe.model, recipe.pooler)
        self.data = self.split("train", recipe.data.train, recipe.data.mix)

    def split(self, on: str, limit: int | None, mix: Sequence[Mixed] = ()) -> Ref:
        """The data that `on` means: a split of the recipe's task, or `task` or `task/split` of another."""
        data = self.recipe.data
        task, split = find_target(on, self.recipe.task)
        bias = data.synthetic_bias if task == self.recipe.task else None
        holdout = data.holdout if task == self.recipe.task else None
        return data_ref(task, split, data.folder, limit, data.seed, bias, tuple(mix), holdout)

    def train(
        self,
        mask: Stage | None = None,
        start: Stage | None = None,
        head: Stage | None = None,
        stop_at: float | None = None,
        fresh_head: bool = False,
        settings: TrainSettings | None = None,
        control: Settings | None = None,
        keep_epochs: bool = False,
    ) -> Stage:
        """A training on the recipe's task."""
        settings = settings or self.recipe.train
        said = {
            "train": _training_part(settings),
            "seed": self.recipe.seed,
            "precision": self.precision,
            "stop_at": stop_at,
            "head": "fresh" if fresh_head and start is not None else None,
            "control": control.model_dump(mode="json") if control is not None else None,
            "keep_epochs": keep_epochs or None,
        }
        return _stage(
            "train",
            "fine-tune" if mask is None else "train the ticket",
            said,
            inputs={"mask": mask, "start": start, "head": head, **self._asked_by(settings, self.data)},
            refs={"model": self.origin, "data": self.data},
            unhashed=_unhashed(settings),
        )

    def _asked_by(self, settings: TrainSettings, data: Ref) -> dict[str, Stage | None]:
        """What the loss reads besides the data: a bias model's predictions, a teacher's."""
        loss = settings.loss
        return {
            "bias": self.bias(data) if loss.needs_bias else None,
            "teacher": self.teacher(data) if loss.needs_teacher else None,
        }

    def bias(self, data: Ref) -> Stage:
        """The bias model's predictions on training data."""
        assert self.recipe.bias is not None
        said = {"bias": self.recipe.bias.canonical(), "seed": self.recipe.seed}
        return _stage("bias", "fit the bias model", said, refs={"data": data, **bias_refs(self.recipe.bias)})

    def teacher(self, data: Ref) -> Stage:
        """The predictions of a plainly fine-tuned model on training data."""
        plain = self.recipe.train.model_copy(
            update={"loss": CrossEntropyLoss(), "adversary": None, "r_drop": None, "select": None}
        )
        said = {"max_length": plain.max_length, "precision": self.precision}
        inputs = {"model": self.train(settings=plain)}
        return _stage("teacher", "ask the teacher", said, inputs=inputs, refs={"data": data})

    def learn(self, settings: Learned, sparsity: float | None, start: Stage | None = None) -> Stage:
        """Scores learned by gradient descent, at one sparsity if they depend on it."""
        training = settings.train
        search = settings.model_copy(update={"task": None}).canonical()
        said = {
            "search": {name: value for name, value in search.items() if name != "train"},
            "train": _training_part(training),
            "sparsity": sparsity,
            "scope": self.recipe.draw.scope if sparsity is not None else None,
            "seed": self.recipe.seed,
            "precision": self.precision,
        }
        data = self.split("train", self.recipe.data.train, settings.mix) if settings.mix else self.data
        return _stage(
            "search",
            "search",
            said,
            inputs={"start": start, **self._asked_by(training, data)},
            refs={"model": self.origin, "data": data},
            unhashed=_unhashed(training),
        )

    def score(self, scorer: SearchSettings, of: Stage | None = None) -> Stage:
        """Scores of a model's units, for draws at any sparsity."""
        said = {
            "search": scorer.model_copy(update={"task": None}).canonical(),
            "seed": self.recipe.seed,
            "max_length": self.recipe.train.max_length if scorer.reads_data else None,
        }
        return _stage(
            "score", "score", said, inputs={"of": of}, refs={"model": self.origin, "data": self.data}
        )

    def draw(
        self,
        scorer: SearchSettings,
        sparsity: float,
        of: Stage | None = None,
        within: Stage | None = None,
        scores: Stage | None = None,
    ) -> Stage:
        """A mask drawn from the scores of a model, or from learned ones."""
        said = {
            "search": scorer.model_copy(update={"task": None}).canonical(),
            "sparsity": sparsity,
            "scope": self.recipe.draw.scope,
            "seed": self.recipe.seed,
            "max_length": self.recipe.train.max_length if scorer.reads_data else None,
        }
        refs = {"model": self.origin, "data": self.data}
        inputs = {"of": of, "within": within, "scores": scores}
        return _stage("draw", f"draw {sparsity:.0%}", said, inputs=inputs, refs=refs)

    def given(self, masks: Sequence[str], combine: str) -> Stage:
        """Masks from files, combined."""
        refs = {f"mask{index}": mask_ref(mask) for index, mask in enumerate(masks)}
        refs |= {"model": self.origin, "data": self.data}
        return _stage("given", "take the mask", {"combine": combine}, refs=refs)

    def perturb(self, mask: Stage, share: float) -> Stage:
        """The mask with a share of its units swapped."""
        said = {"share": share, "seed": self.recipe.seed}
        return _stage("perturb", f"perturb {share:.0%}", said, inputs={"mask": mask})

    def evaluate(self, on: str, model: Stage, mask: Stage | None) -> Stage:
        """A score of the model on one data set."""
        said = {"max_length": self.recipe.train.max_length, "precision": self.precision}
        refs = {"data": self.split(on, self.recipe.data.evaluation), "trained": self.data}
        return _stage("evaluate", f"evaluate on {on}", said, inputs={"model": model, "mask": mask}, refs=refs)

    def attack(self, name: str, model: Stage, mask: Stage | None, epoch: int | None = None) -> Stage:
        """One attack on the model, or on what it was after an epoch."""
        settings = self.recipe.attack
        assert settings is not None
        said = {
            "attack": name,
            "n": settings.n,
            "seed": settings.seed,
            "max_length": self.recipe.train.max_length,
            "precision": self.precision,
            "query_budget": settings.query_budget,
            "mlm": settings.mlm,
            "epoch": epoch,
        }
        refs = {"data": self.split(settings.on, None), "trained": self.data}
        if settings.vectors:
            refs["vectors"] = vectors_ref(settings.vectors)
        label = f"attack with {name}" if epoch is None else f"attack epoch {epoch} with {name}"
        return _stage("attack", label, said, inputs={"model": model, "mask": mask}, refs=refs)

    def measure(self, model: Stage, mask: Stage | None) -> Stage:
        """Size and speed of the model, shrunk by its mask."""
        assert self.recipe.measure is not None
        said = self.recipe.measure.model_dump(mode="json")
        return _stage("measure", "measure", said, inputs={"model": model, "mask": mask})


def _stage(
    kind: str,
    label: str,
    said: Mapping[str, Any],
    inputs: Mapping[str, Stage | None] | None = None,
    refs: Mapping[str, Ref] | None = None,
    unhashed: Mapping[str, Any] | None = None,
) -> Stage:
    """A stage of what was said and given; what was not, leaves no trace in its hash."""
    return Stage(
        kind=kind,
        version=kinds[kind].version,
        settings={name: value for name, value in said.items() if value is not None},
        inputs={name: stage for name, stage in (inputs or {}).items() if stage is not None},
        refs=refs or {},
        unhashed=unhashed or {},
        label=label,
    )


def _unhashed(settings: TrainSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in sorted(settings.unhashed)}


def _training_part(settings: TrainSettings) -> dict[str, Any]:
    """The settings that a training shares with every other: what only a recipe's `retrain` says is left out."""
    said = settings.canonical()
    return {name: value for name, value in said.items() if name in TrainSettings.model_fields}
