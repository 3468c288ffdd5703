"""The base of everything that a recipe may say, and the sentences that a wrong one gets."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tombola.errors import RecipeError, UnknownName


class Settings(BaseModel):
    """Typed, frozen, and strict about keys: what a user may say about one part of the road."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    unhashed: ClassVar[frozenset[str]] = frozenset()
    """Fields that do not change the result (how often to save, where to report)."""

    def canonical(self) -> dict[str, Any]:
        """What enters a stage's hash: only what differs from the defaults.

        A field added later with a default that changes nothing therefore renames no stored folder.
        """
        return self.model_dump(mode="json", exclude_defaults=True, exclude=set(self.unhashed))


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
    path = ".".join(str(part) for part in first["loc"])
    full = ".".join(part for part in (where, path) if part)
    if first["type"] == "extra_forbidden":
        parent = ".".join(full.split(".")[:-1])
        valid = _fields_at(kind, first["loc"][:-1])
        return RecipeError(str(UnknownName("key", first["loc"][-1], valid, where=parent or "recipe")))
    if first["type"] == "missing":
        return RecipeError(f"{full}: is required")
    message = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    if first["type"] in ("value_error", "assertion_error"):
        return RecipeError(f"{full}: {message}" if full else message)
    return RecipeError(f"{full}: takes {message}, not {first['input']!r}")


def _fields_at(kind: type[BaseModel], path: tuple[Any, ...]) -> list[str]:
    """The keys that are valid at a path; places in lists and mappings are passed over."""
    for part in path:
        field = kind.model_fields.get(str(part))
        kind = (settings_type(field.annotation) if field else None) or kind
    return list(kind.model_fields)


def settings_type(annotation: Any) -> type[BaseModel] | None:
    """The settings class inside an annotation such as `TrainSettings | None`, if there is one."""
    if isinstance(annotation, type):
        return annotation if issubclass(annotation, BaseModel) else None
    for inner in getattr(annotation, "__args__", ()):
        found = settings_type(inner)
        if found is not None:
            return found
    return None
