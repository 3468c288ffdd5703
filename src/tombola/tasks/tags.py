"""Entity tags: their schemes, and the entities that they mark."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from tombola.tasks.readers import BadRow

TagScheme = Literal["iob2", "iob1", "bioes"]
"""Tag schemes of files. All are converted to IOB2: `B-` begins an entity, `I-` continues it."""

_BIOES = {"B": "B", "I": "I", "E": "I", "S": "B", "L": "I", "U": "B"}


class Entity(NamedTuple):
    """An entity: its type, its first word, and the word after its last."""

    type: str
    start: int
    end: int


def entity_types(tags: Iterable[str]) -> set[str]:
    """Return the entity types that tags mark."""
    return {name for prefix, dash, name in (tag.partition("-") for tag in tags) if dash and prefix in _BIOES}


def entities(tags: Sequence[str]) -> list[Entity]:
    """Return the entities in a sentence as CoNLL's script finds them, even in invalid IOB2 sequences.

    An entity begins at every `B-`, and at an `I-` that does not continue one of its type.
    """
    spans: list[Entity] = []
    start, inside = 0, ""
    for place, tag in enumerate([*tags, "O"]):
        prefix, _, name = tag.partition("-")
        if inside and (prefix != "I" or name != inside):
            spans.append(Entity(inside, start, place))
            inside = ""
        if name and not inside:
            start, inside = place, name
    return spans


def to_iob2(tags: Sequence[str], scheme: TagScheme, words: Sequence[str]) -> list[str]:
    """Convert the tags of a sentence to IOB2; BadRow names a word whose tag is invalid in the scheme."""
    if scheme == "bioes":
        tags = [f"{_BIOES.get(tag[:1], tag[:1])}{tag[1:]}" if tag[1:2] == "-" else tag for tag in tags]
    if scheme == "iob1":
        begins = {entity.start for entity in entities(tags)}
        return [f"B{tag[1:]}" if place in begins else tag for place, tag in enumerate(tags)]
    before = "O"
    for word, tag in zip(words, tags, strict=True):
        if tag.startswith("I-") and before[2:] != tag[2:]:
            raise BadRow(
                f"tag {tag!r} of {word!r} continues no entity (before it is {before!r}), which IOB2 does not allow: "
                "if the file is written in IOB1, set `source.tag_scheme: iob1` in the task file"
            )
        before = tag
    return list(tags)
