"""The base class of all recipe settings, and error messages for invalid recipes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)
from pydantic.fields import FieldInfo

from tombola.errors import RecipeError, UnknownName

Model = TypeVar("Model", bound=BaseModel)


class Settings(BaseModel):
    """One part of a recipe: typed, frozen, and strict about keys.

    Fields hold tuples, not lists: hashable values are not copied for every cell of a study.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    unhashed: ClassVar[frozenset[str]] = frozenset()
    """Fields that do not affect the result (how often to save, where to report)."""
    hints: ClassVar[dict[str, str]] = {}
    """Hints for keys that users expect here but that have another name, or none."""

    def canonical(self) -> dict[str, Any]:
        """Return the settings that enter a stage's hash: only those that differ from the defaults.

        So a field added later with a neutral default renames no stored folder.
        """
        return self.model_dump(mode="json", exclude_defaults=True, exclude=set(self.unhashed))

    @classmethod
    def kinds(cls) -> list[type[Any]]:
        """Return the settings classes that a field of this type accepts."""
        return [cls]

    @classmethod
    def meant_by(cls, raw: Any) -> type[Any] | None:
        """Return which of the `kinds` raw input is meant for, if that is clear."""
        return cls


class Kind(Settings):
    """One of several kinds of settings, distinguished by `kind`, which is written even at its default."""

    kind: str

    @model_serializer(mode="wrap")
    def _with_kind(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {"kind": self.kind, **fields(self)}


@dataclass(frozen=True)
class Complaint:
    """One mistake: the path of the field, the path shown in the sentence, and the rest of the sentence."""

    path: tuple[str, ...]
    place: tuple[str, ...]
    text: str

    def sentence(self, where: str = "") -> str:
        """Return the mistake as a sentence, with `where` before its path."""
        place = ".".join(part for part in (where, *self.place) if part)
        if not place and self.path != self.place:
            place = "recipe"
        return f"{place}: {self.text}" if place else self.text


def checked(kind: type[Model], raw: Any, where: str = "") -> Model:
    """Build `kind` from raw input, or raise an error that lists all mistakes at once."""
    if not isinstance(raw, dict):
        raise RecipeError(f"{where or 'recipe'}: takes a mapping of settings, not {raw!r}")
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        mistakes = complaints(error, kind, raw)
        raise RecipeError(*(complaint.sentence(where) for complaint in mistakes)) from None


def complaints(error: ValidationError, kind: type[BaseModel], raw: Any) -> list[Complaint]:
    """Convert pydantic's errors into sentences for the author of the recipe."""
    errors = error.errors()
    # a list whose only value is wrong also counts as empty
    emptied = {entry["loc"][:size] for entry in errors for size in range(len(entry["loc"]))}
    kept = [entry for entry in errors if entry["type"] != "too_short" or entry["loc"] not in emptied]
    # a validator that finds several mistakes names one per line
    lines = [{**entry, "msg": line} for entry in kept for line in entry["msg"].splitlines()]
    return _with_alternatives(dict.fromkeys(_complaint(entry, kind, raw) for entry in lines))


def _with_alternatives(found: Iterable[Complaint]) -> list[Complaint]:
    """Merge complaints about a value that fits no type of a union: `must be 'epoch' or greater than 0, not -1`."""
    merged: dict[tuple[object, ...], Complaint] = {}
    for complaint in found:
        wanted, but, value = complaint.text.partition(", not ")
        key = (
            complaint.path,
            complaint.place,
            value if but and wanted.startswith("must be ") else complaint.text,
        )
        if key in merged:
            first = merged[key].text.partition(", not ")[0]
            text = f"{first} or {wanted.removeprefix('must be ')}, not {value}"
            complaint = Complaint(complaint.path, complaint.place, text)
        merged[key] = complaint
    return list(merged.values())


def _values(count: int) -> str:
    return "one value" if count == 1 else f"{count} values"


def _complaint(error: Any, kind: type[BaseModel], raw: Any) -> Complaint:
    place = _walk(kind, error["loc"], raw)
    path, message = tuple(place.path), error["msg"]
    match error["type"]:
        case "extra_forbidden" | "invalid_key":  # a key that is a number
            return Complaint(path, path[:-1], _unknown_key(path, place, kind))
        case "missing":
            about = next((field.description for field in place.fields if field.description), None)
            return Complaint(path, path, "is required" + (f" ({about})" if about else ""))
        case "model_type" | "model_attributes_type" | "dict_type":
            return Complaint(path, path, f"takes a mapping of settings, not {error['input']!r}")
        case "union_tag_invalid" | "union_tag_not_found":
            tag, kinds = error["ctx"]["discriminator"].strip("'"), error["ctx"].get("expected_tags", "")
            return Complaint(path, path, f"needs a {tag}" + (f", one of {kinds}" if kinds else ""))
        case "too_short":
            return Complaint(path, path, f"needs at least {_values(error['ctx']['min_length'])}")
        case "choice":
            return Complaint(path, path, message)
        case "value_error" | "assertion_error":
            return Complaint(path, path, message.removeprefix("Value error, "))
    message = message.removeprefix("Input should be ").replace("a valid tuple", "a valid list")  # as in YAML
    message = message.partition(", unable to parse")[0].partition(", got a number with")[0]
    if message == "a valid list" and isinstance(error["input"], str):
        return Complaint(
            path, path, f"must be a valid list, not {error['input']!r}: write [{error['input']}]"
        )
    remedy = ": put it in quotes" if message == "a valid string" and isinstance(error["input"], bool) else ""
    return Complaint(path, path, f"must be {message}, not {error['input']!r}{remedy}")


def _unknown_key(path: tuple[str, ...], place: _Place, kind: type[BaseModel]) -> str:
    """Suggest a replacement for an unknown key: a similar name, or the section that has it."""
    key = path[-1]
    hints = [kind.hints[key] for kind in place.kinds if issubclass(kind, Settings) and key in kind.hints]
    if hints:
        return f"unknown key {key!r}. {hints[0]}"
    sections = _sections_with(key, kind) if len(path) == 1 else []
    if sections:
        return f"unknown key {key!r}. Did you mean {' or '.join(repr(section) for section in sections)}?"
    return str(UnknownName("key", key, place.valid))


def _sections_with(key: str, kind: type[BaseModel]) -> list[str]:
    """Return the sections of settings that have a key, as dotted paths."""
    return [
        f"{name}.{key}"
        for name, field in kind.model_fields.items()
        if any(key in inner.model_fields for inner in settings_types(field.annotation))
    ][:2]


@dataclass
class _Place:
    """An error's path as the user wrote it, the fields it may end in, and the settings concerned."""

    path: list[str]
    fields: list[FieldInfo]
    kinds: list[type[BaseModel]]

    @property
    def valid(self) -> list[str]:
        """The valid keys at this place."""
        return list(dict.fromkeys(name for kind in self.kinds for name in kind.model_fields))


def _walk(kind: type[BaseModel], loc: tuple[Any, ...], raw: Any) -> _Place:
    """Follow an error's path through the settings classes, without the tags that pydantic adds."""
    path: list[str] = []
    fields: list[FieldInfo] = []
    choices = _meant([kind], raw)
    for part in loc:
        tagged = [choice for choice in choices if str(part) in tags(choice)] if len(choices) > 1 else []
        if tagged:
            choices = tagged
            continue
        if path and raw is not None and not isinstance(raw, dict | list | tuple | BaseModel):
            break  # a type of a union, which pydantic names after the value's own path
        path.append(str(part))
        raw = _inside(raw, part)
        if isinstance(part, int):
            choices = _meant([inner for field in fields for inner in settings_types(field.annotation)], raw)
            continue
        fields = [choice.model_fields[part] for choice in choices if part in choice.model_fields]
        inner = [kind for field in fields for kind in settings_types(field.annotation)]
        choices = _meant(inner, raw) or choices
    return _Place(path, fields, choices)


def _inside(raw: Any, part: Any) -> Any:
    try:
        return raw[part]
    except (KeyError, IndexError, TypeError):
        return None


def _meant(kinds: list[type[BaseModel]], raw: Any) -> list[type[BaseModel]]:
    """Return the settings classes among `kinds`, or among their registered kinds, that raw input is meant for."""
    meant: list[type[BaseModel]] = []
    for kind in kinds:
        if not issubclass(kind, Settings):
            meant.append(kind)
        else:
            by_raw = kind.meant_by(raw)
            meant += [by_raw] if by_raw is not None else kind.kinds()
    return meant


TAGS = ("kind", "method")
"""The fields that distinguish kinds of settings."""


def tags(kind: type[BaseModel]) -> list[str]:
    """Return the possible tags of a kind: `poe` for the settings of that loss."""
    fields = [kind.model_fields[tag] for tag in TAGS if tag in kind.model_fields]
    return [
        str(value)
        for field in fields
        if get_origin(field.annotation) is Literal
        for value in get_args(field.annotation)
    ]


def settings_types(annotation: Any) -> list[type[BaseModel]]:
    """Return the settings classes in an annotation such as `TrainSettings | None`, or a union of kinds."""
    return list(_settings_types(annotation))


def _settings_types(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and not get_args(annotation):
        if issubclass(annotation, BaseModel):
            yield annotation
        return
    for inner in get_args(annotation):
        yield from _settings_types(inner)


def settings_type(annotation: Any, raw: dict[str, Any]) -> type[BaseModel] | None:
    """Return the settings class that raw input at an annotation is meant for, if any."""
    candidates = _meant(settings_types(annotation), raw)
    tagged = [
        candidate for candidate in candidates if any(str(raw.get(tag)) in tags(candidate) for tag in TAGS)
    ]
    return next(iter(tagged or candidates), None)
