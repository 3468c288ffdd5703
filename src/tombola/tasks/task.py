"""A task: columns, labels, metrics and data source, in one YAML file each. A new task is a new file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from tombola.errors import DataError, PluginError, RecipeError, UnknownName
from tombola.foundations.registry import Registry
from tombola.foundations.settings import checked
from tombola.foundations.yaml12 import read_yaml
from tombola.tasks.consistency import mistakes_of
from tombola.tasks.data_files import data_advice, is_data_file
from tombola.tasks.definition import Companions, Definition, Holdout, Language, Names, Source
from tombola.tasks.holding_out import members_of
from tombola.tasks.kinds import KindSettings, kind_of
from tombola.tasks.metrics import metrics
from tombola.tasks.places import find_examples
from tombola.tasks.split import Split
from tombola.words.lexicon import is_english

DEFINITIONS = Path(__file__).parent / "definitions"
HOLDOUT = "holdout"
"""The split that a recipe may hold out from the training data, for selection on data not used otherwise."""


class Task(Definition):
    """A task to train and evaluate on. `text` names one column or a pair; the first metric is the headline."""

    name: str = Field(description="name in tables and folders")
    version: int = Field(description="version number; raise it when the task changes")
    about: str = Field("", description="one line for `tombola list tasks`")
    language: Language = Field(
        "en",
        description="language of the texts, such as `de` or `zh-Hant`, or `und` if unknown; the package's own word "
        "lists are English",
    )
    kind: str = Field("classification", description="kind of task: what a model predicts")
    text: Names = Field(description="column of the text, or the two columns of a pair")
    labels: list[str] | None = Field(
        None, description="label names; files contain the names, or their indices from 0"
    )
    unanswerable: bool = Field(
        False, description="whether some questions have no answer in their context, as in SQuAD 2.0"
    )
    metrics: list[str] = Field(description="metrics to score predictions with; the first is the headline")
    settings: dict[str, Any] = Field({}, description="settings of the kind; recipes may override them")
    attackable: list[str] = Field([], description="columns that attacks may change; by default all of `text`")
    keep: list[str] = Field([], description="more columns to load, for plugins")
    groups: list[str] = Field(
        [],
        description="columns to break scores down by, if the file has them; `a+b` for two at once, `label` for the "
        "true label",
    )
    merge: dict[str, str] = Field({}, description="maps the finer labels of other models to `labels`")
    source: Source = Field(description="location of the data and layout of its files")
    splits: dict[str, str] = Field(
        {}, description="maps splits of the task to the hub's names, where they differ"
    )
    reported: str = Field(
        "",
        description="split of published scores, which the task's name alone refers to; by default validation",
    )
    holdout: dict[str, Holdout] = Field(
        {}, description="splits to take from another one, if they have no file; always the same texts"
    )
    companions: Companions = Field(
        Companions(), description="tasks with the same labels, for testing a model's robustness"
    )
    citation: str = Field("", description="publication of the data")

    _directory: Path = PrivateAttr(default=DEFINITIONS)

    @field_validator("metrics")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        if not names:
            raise ValueError("needs at least one metric; the first is the headline")
        for name in names:
            if name not in metrics:
                raise ValueError(str(UnknownName("metric", name, metrics)))
        return names

    @model_validator(mode="before")
    @classmethod
    def _attack_all(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and not data.get("attackable"):
            text = data.get("text", [])
            return {**data, "attackable": [text] if isinstance(text, str) else text}
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if mistakes := mistakes_of(self):
            raise ValueError("\n".join(mistakes))
        return self

    @classmethod
    def named(cls, name: str) -> "Task":
        """Return a task of the package or a plugin, or the task in a YAML file if `name` is its path.

        Args:
            name: The name of a task, or the path of a task file.
        """
        if name.endswith((".yaml", ".yml")):
            return cls.from_file(Path(name))
        if is_data_file(Path(name)):
            raise DataError(data_advice(Path(name)))
        if name in _registered:
            return cls.from_file(_registered[name])
        if name not in task_names():
            if Path(name).exists():
                raise DataError(data_advice(Path(name)))
            raise UnknownName("task", name, task_names())
        return cls.from_file(DEFINITIONS / f"{name}.yaml")

    @classmethod
    def from_file(cls, path: str | Path) -> "Task":
        """Load a task from its YAML file. Data files without a `folder` are found next to it.

        Args:
            path: The YAML file.
        """
        path = Path(path).expanduser()
        raw = read_yaml(path, "task file", RecipeError)
        if isinstance(raw, dict) and "source" not in raw and {"model", "task"} & set(raw):
            raise RecipeError(f"{path}: is a recipe, not a task file: use the task that it names")
        task = checked(cls, raw, where=f"{path}: task")
        task._directory = path.parent
        return task

    @property
    def all_attackable(self) -> bool:
        """Whether attacks may change every text column."""
        return set(self.attackable) == set(self.text)

    @property
    def english(self) -> bool:
        """Whether the texts are English."""
        return is_english(self.language)

    @property
    def headline(self) -> str:
        """The metric for choosing and comparing tickets."""
        return self.metrics[0]

    @property
    def num_labels(self) -> int:
        """The number of outputs of a classifier's head: one per class, or one for regression."""
        return len(self.labels) if self.labels is not None else 1

    @property
    def single_label(self) -> bool:
        """Whether every example has exactly one of the labels."""
        return kind_of(self).single_label

    @property
    def kind_settings(self) -> KindSettings:
        """The typed settings of its kind."""
        return kind_of(self).settings.model_validate(self.settings)

    @property
    def default_split(self) -> str:
        """The split that the plain task name means in an evaluation: the published one."""
        names = self.split_names()
        return self.reported or ("validation" if "validation" in names else names[-1])

    @property
    def grouped(self) -> list[list[str]]:
        """The groups to break a score down by, each one column or several (`a+b`); `label` is the true label."""
        return [group.split("+") for group in self.groups]

    @property
    def directory(self) -> Path:
        """The folder of the task file."""
        return self._directory

    def split_names(self) -> list[str]:
        """Return the splits that can be loaded."""
        return [*self.source.files, *self.holdout]

    def holding_out(self, share: float) -> "Task":
        """Return the task with this share of its training data as a separate split.

        Args:
            share: The share of the training data.
        """
        held = {HOLDOUT: Holdout(of="train", share=share)}
        return self.model_copy(update={"holdout": {**self.holdout, **held}})

    def with_settings(self, settings: Mapping[str, Any]) -> "Task":
        """Return the task with some of its kind's settings changed.

        Args:
            settings: The changed settings, a recipe's `data.task_settings`.
        """
        if not settings:
            return self
        where = "data.task_settings"
        known = kind_of(self).settings
        if not known.model_fields:
            raise RecipeError(f"{where}: {self.name} is a {self.kind} task, which has no settings")
        merged = {**self.settings, **settings}
        checked(known, merged, where)
        changed = self.model_copy(update={"settings": merged})
        try:
            kind_of(changed).check(changed)
        except ValueError as error:
            raise RecipeError(f"{where}: {error}") from None
        return changed

    def load(
        self, split: str, folder: Path | str | None = None, limit: int | None = None, seed: int = 0
    ) -> Split:
        """Load a split from the package, else the local data folder, else the hub.

        Args:
            split: The name of the split.
            folder: The root of local data folders; by default `TOMBOLA_DATA`.
            limit: The maximum number of examples, drawn at random.
            seed: The seed of the draw.
        """
        if split not in self.split_names():
            raise UnknownName(f"split of {self.name}", split, self.split_names())
        whole = self.holdout[split].of if split in self.holdout else split
        examples, source = find_examples(self, whole, Path(folder) if folder is not None else None)
        loaded = Split(
            self,
            split,
            examples.texts,
            examples.labels,
            examples.ids,
            source,
            examples.columns,
            examples.dropped,
        )
        parts = {name: part for name, part in self.holdout.items() if part.of == whole}
        if parts:
            count = len(loaded)
            loaded = loaded.select(members_of(split, loaded, parts))
            if not len(loaded):
                raise DataError(
                    f"{source}: {self.name}/{split} is empty: none of the {count} examples falls into it. Add "
                    "examples, change the shares under `holdout` in the task file, or set a file for it under "
                    "`source.files`."
                )
        return loaded if limit is None or limit >= len(loaded) else loaded.sample(limit, seed)


_registered: Registry[Path] = Registry("task")
"""The files of registered tasks from outside the package."""


def task_names() -> list[str]:
    """Return the names of the package's tasks and of registered ones."""
    return sorted([*(path.stem for path in DEFINITIONS.glob("*.yaml")), *_registered])


def register_task(path: str | Path) -> Task:
    """Register a task file, so that recipes can use its name.

    Args:
        path: The task's YAML file. Data files without a `folder` are found next to it.
    """
    path = Path(path).resolve()
    task = Task.from_file(path)
    if task.name in task_names():
        raise PluginError(f"task {task.name!r} already exists: choose another name")
    _registered(task.name)(path)
    return task
