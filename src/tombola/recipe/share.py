"""The recipe of `tombola share`: several tasks that share an encoder."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from tombola.attacks.in_the_loop import AttackAdversary
from tombola.errors import RecipeError, TombolaError, UnknownName
from tombola.foundations.caching import run_cache
from tombola.foundations.paths import twins
from tombola.foundations.settings import Settings, complaints
from tombola.objectives.swaps import SwapAdversary
from tombola.recipe.cell import Cell
from tombola.recipe.grid import expand
from tombola.recipe.reading import Raw, merge
from tombola.recipe.recipe import Recipe
from tombola.recipe.sections import DataSettings, EvaluateSettings, WantedPrecision
from tombola.search.given import Given
from tombola.tasks import Task
from tombola.training.multitask.sampling import PROPORTIONAL, Sampling
from tombola.training.settings import TrainSettings

KINDS = ("classification", "regression")
"""The kinds of task that can share an encoder and a batch schedule."""

Control = Literal["random", "alone"]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


class OneTask(Settings):
    """Settings of one task, which override those of all tasks."""

    sparsity: float | None = Field(
        None, ge=0, lt=1, description="sparsity of the task's ticket; 0 shares everything"
    )
    heads: int | None = Field(None, ge=0, description="number of heads to remove, instead of a sparsity")
    ffns: int | None = Field(None, ge=0, description="number of FFNs to remove, instead of a sparsity")
    data: DataSettings = DataSettings()
    single: TrainSettings = TrainSettings()
    search: dict[str, Any] = Field(
        {},
        description="search for the task's ticket, if it differs; {method: given, masks: [FOLDER]} uses your own",
    )
    evaluate: EvaluateSettings | None = Field(
        None,
        description="data sets to score the task on, if they differ; their mean enters the average",
    )
    metrics: tuple[str, ...] = Field(
        (), description="metrics to show in tables and to average; by default the task's first"
    )

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of heads and FFNs to remove, as far as given."""
        counts = {"heads": self.heads, "ffns": self.ffns}
        return {name: count for name, count in counts.items() if count is not None}

    @model_validator(mode="after")
    def _check_amount(self) -> Self:
        if self.counts and self.sparsity is not None:
            raise ValueError("heads and ffns: replace sparsity; remove one or the other")
        return self


class ShareRecipe(Settings):
    """Several tasks, each with a ticket drawn from its own fine-tuning, trained together."""

    name: str = Field("share", description="name in tables and folders")
    about: str = Field("", description="one-sentence description")
    plugins: tuple[str, ...] = Field(
        (), description="Python files or modules that define methods, losses, tasks … used in the recipe"
    )
    model: str = Field(description="name from `tombola list models`, local folder or hub id")
    pooler: Literal["own", "new"] = Field(
        "own",
        description="new: initialise the pooler like the heads, for sentence encoders, whose pooler was never trained",
    )
    tasks: list[str] = Field(min_length=2, description="names of tasks, or paths of task files")
    seed: Annotated[list[Seed], BeforeValidator(lambda seed: seed if isinstance(seed, list) else [seed])] = (
        Field([1], min_length=1, description="one seed, or a list to repeat everything for each")
    )
    precision: WantedPrecision = "auto"
    data: DataSettings = DataSettings()
    train: TrainSettings = Field(TrainSettings(), description="training of all tasks together")
    single: TrainSettings = Field(
        TrainSettings(),
        description="fine-tuning from which a task's ticket is drawn; unset keys are inherited from `train`",
    )
    search: dict[str, Any] = Field(
        {"method": "importance"}, description="search for each ticket, as in a recipe of `tombola run`"
    )
    sparsity: float = Field(0.1, ge=0, lt=1, description="sparsity of every task's ticket")
    per_task: dict[str, OneTask] = Field({}, description="settings that differ for a task, by its name")
    sampling: Sampling = PROPORTIONAL
    controls: tuple[Control, ...] = Field(
        (),
        description="what else to compare with: random trains once more, under random tickets of the same size; "
        "alone scores each task's single fine-tuning",
    )
    evaluate: EvaluateSettings = EvaluateSettings()

    @model_validator(mode="before")
    @classmethod
    def _inherit_training(cls, raw: Any) -> Any:
        train, single = raw.get("train") or {}, raw.get("single") or {}
        if isinstance(train, dict) and isinstance(single, dict):
            return {**raw, "single": {**train, **single}}
        return raw

    @field_validator("tasks")
    @classmethod
    def _check_tasks(cls, names: list[str]) -> list[str]:
        try:
            tasks = [Task.named(name) for name in names]
        except RecipeError as error:
            raise ValueError("\n".join(error.mistakes)) from None
        except TombolaError as error:
            raise ValueError(str(error)) from None
        if len({task.name for task in tasks}) < len(tasks):
            raise ValueError("must be unique")
        if found := twins(task.name for task in tasks):
            raise ValueError(
                f"{found[0]} and {found[1]} would share a folder on case-insensitive disks: rename one "
                "of them"
            )
        for task in tasks:
            if task.kind not in KINDS:
                raise ValueError(
                    f"{task.name} is a {task.kind} task; only {' and '.join(KINDS)} can be shared"
                )
        return names

    @field_validator("controls", "seed")
    @classmethod
    def _check_unique(cls, values: Any) -> Any:
        if len(set(values)) < len(values):
            raise ValueError("must be unique")
        return values

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in self.per_task:
            if name not in self.tasks:
                raise ValueError(str(UnknownName("task", name, self.tasks, where="per_task")))
        for name, own in self.per_task.items():
            for metric in own.metrics:
                if metric not in (known := Task.named(name).metrics):
                    raise ValueError(
                        str(UnknownName("metric", metric, known, where=f"per_task.{name}.metrics"))
                    )
        if self.train.loss.needs_bias:
            raise ValueError(
                f"train.loss: {self.train.loss.kind} belongs to one task, so it cannot be shared"
            )
        if self.train.distill is not None:
            raise ValueError(
                "train.distill: a teacher knows one task, so it cannot be shared; set it in `single`"
            )
        if isinstance(self.train.adversary, AttackAdversary | SwapAdversary):
            raise ValueError(
                f"train.adversary: {self.train.adversary.kind} only works in the training of a single task; set it in "
                "`single`"
            )
        if self.train.augment is not None:
            raise ValueError("train.augment: only works in the training of a single task; set it in `single`")
        if self.evaluate.every is not None or self.evaluate.best is not None:
            raise ValueError(
                "evaluate.every, evaluate.best: only work in the training of a single task; leave them out"
            )
        if self.train.select is not None:
            raise ValueError(
                "train.select: only works for a single task; in sharing, the masks determine what each "
                "batch updates"
            )
        return self

    def sparsity_of(self, task: str) -> float:
        """Return the sparsity of a task's ticket."""
        own = self.per_task[task].sparsity if task in self.per_task else None
        return self.sparsity if own is None else own

    def for_task(self, task: str, seed: int) -> Cell:
        """Return the recipe of a single task, which draws its ticket."""
        own = self.per_task.get(task, OneTask())
        amount: dict[str, Any] = own.counts or {"sparsity": self.sparsity_of(task)}
        raw = {
            "name": self.name,
            "plugins": list(self.plugins),
            "model": self.model,
            "pooler": self.pooler,
            "task": task,
            "seed": seed,
            "precision": self.precision,
            "data": {**_set_values(self.data), **_set_values(own.data)},
            "train": {**_set_values(self.single), **_set_values(own.single)},
            "search": merge({"search": self.search}, {"search": own.search})["search"],
            "draw": amount,
            "evaluate": _set_values(own.evaluate or self.evaluate),
            "retrain": None,
        }
        cells = expand(raw)
        if len(cells) > 1:
            raise RecipeError(f"{', '.join(cells[0].axes)}: takes one value here; only `seed` may be a list")
        return cells[0]


def check_share(raw: Raw) -> ShareRecipe:
    """Return the recipe in a raw mapping, after checking it for each of its tasks.

    Raises:
        RecipeError: With all mistakes.
    """
    if "tasks" not in raw:
        raise RecipeError(
            "the recipe has no `tasks` that share an encoder: list two or more, or use super_tickets/mtl_quick; run "
            "a recipe for one task with `tombola run`"
        )
    try:
        recipe = ShareRecipe.model_validate(raw)
    except ValidationError as error:
        single = raw.get("single") or {}
        found = [
            complaint
            for complaint in complaints(error, ShareRecipe, raw)
            if complaint.path[:1] != ("single",) or complaint.path[1:2] == () or complaint.path[1] in single
        ]
        raise RecipeError(*(complaint.sentence() for complaint in found)) from None
    mistakes: list[str] = []
    tasks: list[Recipe] = []
    with run_cache():
        for task in recipe.tasks:
            try:
                tasks.append(recipe.for_task(task, recipe.seed[0]).recipe)
            except RecipeError as error:
                mistakes += error.mistakes
    if not mistakes and "random" in recipe.controls:
        mistakes += _mistakes_of_random_control(tasks)
    if mistakes:
        raise RecipeError(*mistakes)
    return recipe


def has_ticket(recipe: Recipe) -> bool:
    """Return whether a task has a ticket: its mask is given, or removes units."""
    if isinstance(recipe.search, Given):
        return True
    return any(recipe.draw.counts.values()) if recipe.draw.counts is not None else recipe.draw.sparsity > 0


def _mistakes_of_random_control(tasks: list[Recipe]) -> list[str]:
    """Return why tickets cannot be compared with random ones: there are none, or they are random already."""
    tickets = [recipe for recipe in tasks if has_ticket(recipe)]
    if not tickets:
        return [
            "controls: random needs tickets to compare with, but no task has one; set a sparsity, or leave it out"
        ]
    return [
        f"controls: random compares tickets with random ones, but those of {Task.named(recipe.task).name} are random "
        "already; use another search, or leave it out"
        for recipe in tickets
        if recipe.search is not None
        and (recipe.search.method == "random" or getattr(recipe.search, "order", None) == "random")
    ]


def _set_values(settings: Settings) -> dict[str, Any]:
    return settings.model_dump(mode="json", exclude_unset=True)
