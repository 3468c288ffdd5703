"""Choices: settings of several kinds, from an open list that plugins can extend."""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeVar, cast

from pydantic import (
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from tombola.errors import UnknownName
from tombola.foundations.registry import Registry
from tombola.foundations.settings import Settings

S = TypeVar("S", bound="type[Choice]")

COMPLAINT = "choice"
"""The pydantic error type of an invalid choice; its message is a complete sentence."""


class Choice(Settings):
    """Base class of settings of several kinds, distinguished by a tag.

    A base class sets `choices`. A field of its type takes any registered kind:

        class Gate(Choice):
            choices = gates

        @gates.register
        class Threshold(Gate):
            kind: Literal["threshold"] = "threshold"

        class Learned(Settings):
            gate: Gate

    The base class constructs all kinds: `Gate(kind="threshold")` is a `Threshold`. The tag is always written, even at
    its default. Validation errors concern only the fields of the chosen kind.
    """

    choices: ClassVar[Registry[Any]]
    """The registry of the kinds: settings classes, or entries with a `settings` class."""
    tag: ClassVar[str] = "kind"
    """The field that distinguishes kinds."""
    usual: ClassVar[str | None] = None
    """The kind of a mapping without a tag."""
    by_name: ClassVar[bool] = False
    """Whether the tag alone may stand for a kind with default settings."""

    def __new__(cls, *args: Any, **fields: Any) -> Self:
        """Create an instance; for the base class, one of the kind that the fields name."""
        return cls.model_validate(fields) if cls.is_open() else super().__new__(cls)

    @classmethod
    def is_open(cls) -> bool:
        """Return whether this is a base class with registered kinds, not one of the kinds."""
        return "choices" in cls.__dict__

    @classmethod
    def settings_of(cls, name: str) -> type[Choice]:
        """Return the settings class of a kind."""
        entry = cls.choices[name]
        return entry if isinstance(entry, type) else entry.settings

    @classmethod
    def kinds(cls) -> list[type[Choice]]:
        """Return the settings classes of all kinds."""
        return [cls.settings_of(name) for name in cls.choices]

    @classmethod
    def meant_by(cls, raw: Any) -> type[Choice] | None:
        """Return the settings class that raw input names, if it exists."""
        name = raw.get(cls.tag, cls.usual) if isinstance(raw, dict) else raw
        return cls.settings_of(str(name)) if name in cls.choices else None

    @classmethod
    def choose(cls, value: Any) -> Any:
        """Return the settings of the kind that raw input names."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str) and cls.by_name:
            value = {cls.tag: value}
        names = ", ".join(cls.choices)
        if not isinstance(value, dict):
            raise PydanticCustomError(
                COMPLAINT, f"takes a mapping with a {cls.tag}, one of {names}; not {value!r}"
            )
        name = value.get(cls.tag, cls.usual)
        if name is None:
            raise PydanticCustomError(COMPLAINT, f"needs a {cls.tag}, one of {names}")
        if name not in cls.choices:
            raise PydanticCustomError(COMPLAINT, str(UnknownName(cls.choices.kind, name, cls.choices)))
        return cls.settings_of(name).model_validate(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if not cls.is_open():
            return handler(source)
        return core_schema.no_info_plain_validator_function(
            cls.choose, serialization=core_schema.simple_ser_schema("any")
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        if not cls.is_open():
            return handler(schema)
        names = [core_schema.literal_schema(list(cls.choices))] if cls.by_name else []
        return handler(core_schema.union_schema([*names, *map(_with_reference, cls.kinds())]))

    @model_serializer(mode="wrap")
    def _with_tag(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {self.tag: getattr(self, self.tag), **fields(self)}


class Choices(Registry[S]):
    """A registry of kinds that consist only of a settings class."""

    def register(self, settings: S) -> S:
        """Register a settings class under the default of its tag."""
        return self(tag_of(settings))(settings)


def _with_reference(kind: type[Choice]) -> CoreSchema:
    """Return a kind's core schema with a reference, so that it appears only once in a JSON schema."""
    reference = f"{kind.__module__}.{kind.__qualname__}:{id(kind)}"
    return cast(CoreSchema, {**kind.__pydantic_core_schema__, "ref": reference})


def tag_of(settings: type[Choice]) -> str:
    """Return the name of a kind in recipes."""
    return str(settings.model_fields[settings.tag].default)
