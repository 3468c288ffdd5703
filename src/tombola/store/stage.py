"""Stages: the steps of a plan, each identified by everything that determines its result."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel

from tombola.foundations.caching import shared
from tombola.foundations.plugins import plugins_of
from tombola.foundations.registry import Registry
from tombola.foundations.settings import Settings

if TYPE_CHECKING:
    from tombola.store.store import Store

T = TypeVar("T")

Progress = Callable[[int, int, Mapping[str, float]], None]
"""Called with the number of steps done, the total, and the latest figures, such as a loss or a score, if any."""

WORK = "work"
"""The folder for checkpoints inside an unfinished stage; it survives a kill, and is removed when the stage ends."""

_canonical_json = json.JSONEncoder(sort_keys=True, allow_nan=False, check_circular=False).encode


class Reference(ABC):
    """Something outside the store that a stage reads.

    Only its fingerprint is part of the stage's identity, so the location of the data does not matter.
    """

    fingerprint: str


stages: Registry[type[Stage[Any]]] = Registry("stage")
"""All kinds of stage. A class registers itself when it is defined."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Stage(ABC, Generic[T]):
    """One step of a plan: a pure function of its settings, its inputs and its references.

    A kind of stage is a frozen, keyword-only dataclass. A field that holds a stage is an input, one that holds a
    `Reference` is a reference, and everything else is a setting; tuples of stages or references count as well.
    Settings at their default are left out of the key, so adding a setting renames no stored stage.
    """

    kind: ClassVar[str]
    version: ClassVar[int]
    """Increase it when the result changes for equal settings."""
    overhead: ClassVar[float] = 1.0
    """About how many seconds the stage takes besides training and reading texts, for estimates."""
    distributed: ClassVar[bool] = False
    """Whether all processes of a launcher take part. If false, the first one works and the others wait."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            stages(cls.kind)(cls)

    @property
    @abstractmethod
    def label(self) -> str:
        """The description that users see while the stage runs."""

    @abstractmethod
    def run(self, space: Workspace) -> None:
        """Run the stage, and write the result to the workspace's folder."""

    @abstractmethod
    def read(self, folder: Path) -> T:
        """Read the result from the folder of the finished stage."""

    @cached_property
    def key(self) -> str:
        """The name of this stage's folder: a hash of its identity."""
        return hashlib.blake2b(_canonical_json(self.identity()).encode(), digest_size=12).hexdigest()

    @property
    def name(self) -> str:
        """The kind and the key, which identify the stage in any store."""
        return f"{self.kind}/{self.key}"

    @property
    def inputs(self) -> dict[str, Stage[Any]]:
        """The stages whose results this one reads, by field."""
        return self._parts[0]

    @property
    def references(self) -> dict[str, Reference]:
        """What this stage reads from outside the store, by field."""
        return self._parts[1]

    def identity(self) -> dict[str, Any]:
        """Return everything that determines the stage's result."""
        identity = {
            "kind": self.kind,
            "version": self.version,
            "settings": {**self._parts[2], **self.further_settings()},
            "inputs": {name: stage.key for name, stage in self.inputs.items()},
            "refs": {name: reference.fingerprint for name, reference in self.references.items()},
        }
        if not Registry.is_extended():
            return identity
        plugins = plugins_of([getattr(self, field.name) for field in fields(self)], *self.plugged())
        return {**identity, "plugins": list(plugins)} if plugins else identity

    def further_settings(self) -> Mapping[str, Any]:
        """Return settings that determine the result without being fields, such as how a task computes its scores."""
        return {}

    def plugged(self) -> Iterable[object]:
        """Return further objects that affect the result and that a plugin may define."""
        return ()

    def training_steps(self) -> int:
        """Return the optimizer steps of the stage, for estimates; 0 if it does not train."""
        return 0

    def texts_read(self) -> float | None:
        """Return about how many texts models read besides training steps, for estimates; None if unknown."""
        return 0.0

    def with_inputs(self) -> list[Stage[Any]]:
        """Return this stage and all that it needs, each once, in an order in which they can run."""
        return topological_order([self])

    @cached_property
    def _parts(self) -> tuple[dict[str, Stage[Any]], dict[str, Reference], dict[str, Any]]:
        """The inputs, references and settings, from a single pass over the fields, since plans have many stages."""
        inputs: dict[str, Stage[Any]] = {}
        references: dict[str, Reference] = {}
        settings: dict[str, Any] = {}
        for name, default in _defaults_of(type(self)):
            value = getattr(self, name)
            if value is default:
                continue
            role = _role_of(type(value))  # type: ignore[arg-type]  # types are hashable
            if role == "input":
                inputs[name] = value
            elif role == "reference":
                references[name] = value
            elif type(value) is tuple and (links := _links(name, value)):
                inputs |= {key: item for key, item in links.items() if isinstance(item, Stage)}
                references |= {key: item for key, item in links.items() if isinstance(item, Reference)}
            elif default is MISSING or value != default:
                settings[name] = _plain(value)
        return inputs, references, settings


@dataclass(frozen=True)
class Workspace:
    """Where a stage works: the folder for its result, the store with its inputs, and the progress callback."""

    folder: Path
    store: Store
    progress: Progress

    @property
    def scratch(self) -> Path:
        """A folder that survives a kill and is removed when the stage ends."""
        folder = self.folder / WORK
        folder.mkdir(exist_ok=True)
        return folder

    def open(self, stage: Stage[Any]) -> Path:
        """Return the folder of a finished input."""
        return self.store.open(stage)

    def read(self, stage: Stage[T]) -> T:
        """Return the result of a finished input."""
        return self.store.read(stage)

    def write_json(self, name: str, content: BaseModel | Mapping[str, Any]) -> None:
        """Write a part of the result as JSON."""
        plain = content.model_dump(mode="json") if isinstance(content, BaseModel) else content
        (self.folder / name).write_text(json.dumps(plain, indent=1, allow_nan=False), encoding="utf-8")


def topological_order(ends: Iterable[Stage[Any]]) -> list[Stage[Any]]:
    """Return these stages and all that they need, each once, in an order in which they can run."""
    seen: dict[str, Stage[Any]] = {}

    def visit(stage: Stage[Any]) -> None:
        if stage.key not in seen:
            for needed in stage.inputs.values():
                visit(needed)
            seen[stage.key] = stage

    for stage in ends:
        visit(stage)
    return list(seen.values())


@cache
def _defaults_of(kind: type[Stage[Any]]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a kind of stage, and their defaults."""
    return tuple((field.name, field.default) for field in fields(kind))


def _links(name: str, items: tuple[Any, ...]) -> dict[str, Stage[Any] | Reference]:
    """Return the stages and references in a tuple, by their names in the stage's identity."""
    return {f"{name}.{n}": item for n, item in enumerate(items) if isinstance(item, Stage | Reference)}


@cache
def _role_of(kind: type) -> Literal["input", "reference", "settings", "model", "list", "value"]:
    """Return the role of a type's values in a stage."""
    if issubclass(kind, Stage):
        return "input"
    if issubclass(kind, Reference):
        return "reference"
    if issubclass(kind, BaseModel):
        return "settings" if issubclass(kind, Settings) else "model"
    return "list" if issubclass(kind, tuple | list) else "value"


def _plain(value: Any) -> Any:
    """Convert a setting to JSON, without defaults."""
    match _role_of(type(value)):  # type: ignore[arg-type]
        case "settings":
            return shared(value.canonical)
        case "model":
            return value.model_dump(mode="json", exclude_defaults=True)
        case "list":
            return [_plain(item) for item in value]
    return value
