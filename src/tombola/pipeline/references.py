"""References from stages to pre-trained models, data and users' files outside the store, with fingerprints."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from tombola.errors import DataError, RecipeError
from tombola.families import Family, family_of_type
from tombola.foundations.caching import cached_in_run
from tombola.models.finding import content_hash, find_model
from tombola.store.stage import Reference
from tombola.tasks import HOLDOUT, Split, Task
from tombola.tasks.mixing import Mixed, mix_in
from tombola.tasks.synthetic import FORMS, SyntheticBias, biased
from tombola.tasks.targets import find_target

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase


Pooler = Literal["own", "new"]

NO_SIZES = {
    *("architectures", "id2label", "label2id", "transformers_version", "problem_type", "finetuning_task"),
    *("dtype", "torch_dtype", "initializer_range", "gradient_checkpointing"),
}
"""Config entries that are not about the sizes of a model."""


@dataclass(frozen=True)
class ModelSource(Reference):
    """A pre-trained model in a folder, with its own or a new pooler."""

    name: str
    folder: str
    fingerprint: str
    pooler: Pooler = "own"
    device: str | None = None
    """The device that a stage puts its models on, if that matters, as for timing."""

    @classmethod
    def find(cls, name: str, pooler: Pooler = "own") -> ModelSource:
        """Find a model by built-in name, folder or hub id."""
        return _find_model(name, pooler)

    def load(self, task: Task, seed: int) -> PreTrainedModel:
        """Load the model with a new head for the task."""
        from tombola.models.loading import load_model

        return load_model(self._unchanged(), task, seed, new_pooler=self.pooler == "new")

    def outline(self, task: Task) -> PreTrainedModel:
        """Return the model's sizes, with a head for the task: a model without values."""
        return _outline(self.folder, task)

    def load_finetuned(self, task: Task) -> PreTrainedModel:
        """Load the model with its own trained head for the task."""
        from tombola.models.loading import load_model

        return load_model(self._unchanged(), task, seed=0, finetuned=True)

    def geometry(self) -> str:
        """Return a key for everything that determines the model's speed: its type and its config's sizes and flags."""
        return _geometry(self.folder)

    def family(self) -> Family | None:
        """Return the family of the model's type, which describes its units, or None if it is unknown."""
        return family_of_type(_model_type(self.folder))

    def config(self) -> PreTrainedConfig:
        """Load the model's config."""
        from tombola.models.safety import open_config

        config: PreTrainedConfig = open_config(Path(self.folder))
        return config

    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Load the model's tokenizer."""
        from tombola.models.loading import load_tokenizer

        return load_tokenizer(self._unchanged())

    def _unchanged(self) -> Path:
        """Return the folder, after checking that it still holds the model of the plan."""
        folder = Path(self.folder)
        _require(content_hash(folder) == self.fingerprint.partition("+")[0], f"the model in {folder}")
        return folder


@dataclass(frozen=True)
class DataSource(Reference):
    """A split of a task, or a random subset of it, optionally with a synthetic bias or other data mixed in."""

    task: str
    split: str
    folder: str | None = None
    limit: int | None = None
    seed: int = 0
    holdout: float | None = None
    synthetic_bias: SyntheticBias | None = None
    mix: tuple[Mixed, ...] = ()
    task_settings: tuple[tuple[str, Any], ...] = ()
    """Settings of the task's kind that the recipe changes; the fingerprint includes them."""
    predicted_in: str | None = None
    """A file of a bias model's predictions: examples without one are left out."""
    fingerprint: str = ""

    @classmethod
    def find(
        cls,
        task: str,
        split: str,
        folder: str | None = None,
        limit: int | None = None,
        seed: int = 0,
        holdout: float | None = None,
        synthetic_bias: SyntheticBias | None = None,
        mix: tuple[Mixed, ...] = (),
        task_settings: Mapping[str, Any] | None = None,
        predicted_in: str | None = None,
    ) -> DataSource:
        """Find the data and fingerprint it."""
        settings = tuple(sorted((task_settings or {}).items()))
        return _fingerprinted(
            cls(task, split, folder, limit, seed, holdout, synthetic_bias, mix, settings, predicted_in)
        )

    def load(self) -> Split:
        """Load the examples, and check that they are those of the plan."""
        split = _load(self)
        _require(self.fingerprint in ("", split.fingerprint), f"{self.task}/{self.split} ({split.source})")
        return split

    def unmixed(self) -> Self:
        """Return the task's own data, without the data mixed in."""
        return replace(self, mix=(), fingerprint="")

    @property
    def definition(self) -> Task:
        """The task that the data belongs to, with the recipe's settings."""
        return _definition(self.task, self.task_settings)

    @property
    def attackable(self) -> list[str]:
        """The columns that attacks may change, if not all of them; they are not part of the fingerprint."""
        task = self.definition
        return [] if task.all_attackable else task.attackable


@dataclass(frozen=True)
class FileSource(Reference):
    """A user's file."""

    path: str
    fingerprint: str

    @classmethod
    def find(cls, path: str | Path, key: str) -> FileSource:
        """Fingerprint a file; `key` is its key in the recipe, for the message if it is missing."""
        file = Path(path).expanduser()
        if not file.is_file():
            raise DataError(f"{key}: there is no file {file}")
        with open(file, "rb") as content:
            return cls(str(file), hashlib.file_digest(content, "blake2b").hexdigest()[:32])

    def unchanged(self) -> Path:
        """Return the file, after checking that it is still that of the plan."""
        _require(FileSource.find(self.path, "file") == self, self.path)
        return Path(self.path)


def _require(unchanged: bool, what: str) -> None:
    """Raise if what a stage reads is no longer what its key stands for."""
    if not unchanged:
        raise DataError(f"{what} has changed since the run was planned: run the same command again")


@cached_in_run
def _find_model(name: str, pooler: Pooler) -> ModelSource:
    model = find_model(name)
    suffix = "" if pooler == "own" else f"+{pooler} pooler"
    return ModelSource(name, str(model.folder), f"{model.fingerprint}{suffix}", pooler)


@cached_in_run
def _outline(folder: str, task: Task) -> PreTrainedModel:
    from tombola.models.loading import outline

    return outline(Path(folder), task)


@cached_in_run
def _geometry(folder: str) -> str:
    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    sizes = {
        name: value for name, value in config.items() if not name.startswith("_") and name not in NO_SIZES
    }
    digest = hashlib.blake2b(json.dumps(sizes, sort_keys=True).encode(), digest_size=8)
    return f"{config.get('model_type')} {digest.hexdigest()}"


@cached_in_run
def _model_type(folder: str) -> str:
    path = Path(folder) / "config.json"
    return str(json.loads(path.read_text(encoding="utf-8")).get("model_type")) if path.is_file() else ""


@cached_in_run
def _definition(task: str, settings: tuple[tuple[str, Any], ...]) -> Task:
    return Task.named(task).with_settings(dict(settings))


@cached_in_run
def _fingerprinted(place: DataSource) -> DataSource:
    return replace(place, fingerprint=_load(place).fingerprint)


def _load(place: DataSource) -> Split:
    return _load_split(replace(place, fingerprint=""))


@cached_in_run
def _load_split(place: DataSource) -> Split:
    folder = Path(place.folder).expanduser() if place.folder else None
    name, _, form = place.split.partition("+")
    task = place.definition
    if place.holdout:
        task = task.holding_out(place.holdout)
    elif name == HOLDOUT and name not in task.split_names():
        raise RecipeError(
            "the split 'holdout' exists only with data.holdout: set that to a share of the training data"
        )
    split = task.load(name, folder=folder, limit=place.limit, seed=place.seed)
    if place.synthetic_bias:
        split = biased(split, place.synthetic_bias, form if form in FORMS else "")
    elif form in FORMS:
        raise RecipeError(f"the split {place.split!r} exists only with data.synthetic_bias: set it")
    if form and form not in FORMS:
        from tombola.attacks.neighbours import bundled_words
        from tombola.augmentations.copies import changed_split

        split = changed_split(split, form, bundled_words())
    if place.predicted_in is not None:
        from tombola.bias.files import with_predictions

        split = with_predictions(split, Path(place.predicted_in).expanduser())
    for mixed in place.mix:
        source, part = find_target(mixed.on, place.task)
        other = DataSource(source, part, place.folder, mixed.limit, place.seed)
        if source == place.task:  # what is held out stays out, and every split of a biased task is biased
            other = replace(other, holdout=place.holdout, synthetic_bias=place.synthetic_bias)
        split = mix_in(split, _load_split(other), mixed.times)
    return split
