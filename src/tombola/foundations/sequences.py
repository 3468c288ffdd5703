"""Arguments that take one value or several."""

from collections.abc import Iterable


def as_tuple(values: str | Iterable[str]) -> tuple[str, ...]:
    """Return the values as a tuple; a single string is one value, not a sequence of letters.

    Args:
        values: One string, or several.
    """
    return (values,) if isinstance(values, str) else tuple(values)
