"""The base of everything that a recipe may say, and the sentences that a wrong one gets."""

from typing import Any, ClassVar, Literal, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)
from pydantic.fields import FieldInfo

from tombola.errors import RecipeError, UnknownName


class Settings(BaseModel):
    """Typed, frozen, and strict about keys: what a user may say about one part of the road.

    Fields hold tuples, not lists: what can be hashed is not copied for every cell of a study.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    unhashed: ClassVar[frozenset[str]] = frozenset()
    """Fields that do not change the result (how often to save, where to report)."""

    def canonical(self) -> dict[str, Any]:
        """What enters a stage's hash: only what differs from the defaults.

        A field added later with a default that changes nothing therefore renames no stored folder.
        """
        return self.model_dump(mode="json", exclude_defaults=True, exclude=set(self.unhashed))


class Kind(Settings):
    """One of several kinds of settings, told apart by `kind`, which is written out even at its default."""

    kind: str

    @model_serializer(mode="wrap")
    def _with_kind(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {"kind": self.kind, **fields(self)}


def checked(kind: type[BaseModel], raw: Any, where: str = "") -> Any:
    """Build `kind` from raw input, or say in one sentence what is wrong and where."""
    if not isinstance(raw, dict):
        raise RecipeError(f"{where or 'recipe'}: takes a mapping of settings, not {raw!r}")
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise explain(error, kind, where) from None


def explain(error: ValidationError, kind: type[BaseModel], where: str = "") -> RecipeError:
    """The first of pydantic's complaints, as a sentence for the person who typed the recipe."""
    first = error.errors()[0]
    place, valid = _walk(kind, first["loc"])
    full = ".".join(part for part in (where, *place) if part)
    if first["type"] == "extra_forbidden":
        parent = ".".join(part for part in (where, *place[:-1]) if part)
        return RecipeError(str(UnknownName("key", first["loc"][-1], valid, where=parent or "recipe")))
    if first["type"] == "missing":
        about = next((field.description for field in _fields(kind, first["loc"]) if field.description), None)
        return RecipeError(f"{full}: is required" + (f" ({about})" if about else ""))
    if first["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return RecipeError(f"{full}: takes a mapping of settings, not {first['input']!r}")
    if first["type"] in ("union_tag_invalid", "union_tag_not_found"):
        tag, kinds = first["ctx"]["discriminator"].strip("'"), first["ctx"].get("expected_tags", "")
        return RecipeError(f"{full}: needs a {tag}" + (f", one of {kinds}" if kinds else ""))
    message = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    if first["type"] in ("value_error", "assertion_error"):
        return RecipeError(f"{full}: {message}" if full else message)
    message = message.replace("a valid tuple", "a valid list")  # which is how YAML writes it
    return RecipeError(f"{full}: takes {message}, not {first['input']!r}")


def _fields(kind: type[BaseModel], path: tuple[Any, ...]) -> list[FieldInfo]:
    """The fields that a path may end in, of whatever kind its settings are."""
    choices = [kind]
    for part in path[:-1]:
        fields = [one.model_fields[str(part)] for one in choices if str(part) in one.model_fields]
        choices = [found for field in fields for found in settings_types(field.annotation)] or choices
    return [one.model_fields[str(path[-1])] for one in choices if str(path[-1]) in one.model_fields]


def _walk(kind: type[BaseModel], path: tuple[Any, ...]) -> tuple[list[str], list[str]]:
    """A complaint's path as the user wrote it, without the tags that pydantic adds, and the keys valid there."""
    place: list[str] = []
    choices = [kind]
    for part in path:
        tagged = [one for one in choices if str(part) in tags(one)] if len(choices) > 1 else []
        if tagged:
            choices = tagged
            continue
        place.append(str(part))
        fields = [one.model_fields[str(part)] for one in choices if str(part) in one.model_fields]
        inner = [found for field in fields for found in settings_types(field.annotation)]
        choices = inner or choices
    return place, list(dict.fromkeys(name for one in choices for name in one.model_fields))


TAGS = ("kind", "method")
"""The fields that tell kinds of settings apart."""


def tags(kind: type[BaseModel]) -> list[str]:
    """What a kind's tag may be: `poe` for the settings of that loss."""
    fields = [kind.model_fields[tag] for tag in TAGS if tag in kind.model_fields]
    return [
        str(value)
        for field in fields
        if get_origin(field.annotation) is Literal
        for value in get_args(field.annotation)
    ]


def settings_types(annotation: Any) -> list[type[BaseModel]]:
    """The settings classes inside an annotation such as `TrainSettings | None`, or a union of kinds."""
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [found for inner in getattr(annotation, "__args__", ()) for found in settings_types(inner)]


def settings_type(annotation: Any, raw: dict[str, Any]) -> type[BaseModel] | None:
    """The settings class that raw input at an annotation is meant for, if there is one."""
    found = settings_types(annotation)
    meant = [one for one in found if any(str(raw.get(tag)) in tags(one) for tag in TAGS)]
    return next(iter(meant or found), None)
