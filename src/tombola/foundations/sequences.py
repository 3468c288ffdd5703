"""Values that may be one or several: in arguments, and in sentences."""

from collections.abc import Iterable, Sequence


def as_tuple(values: str | Iterable[str]) -> tuple[str, ...]:
    """Return the values as a tuple; a single string is one value, not a sequence of letters.

    Args:
        values: One string, or several.
    """
    return (values,) if isinstance(values, str) else tuple(values)


def listed(parts: Sequence[str], last: str = "and") -> str:
    """Return the parts of a sentence as a list: `a, b and c`.

    Args:
        parts: The parts, at least one.
        last: The word before the last part.
    """
    return f" {last} ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
