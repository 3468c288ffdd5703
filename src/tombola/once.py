"""What is looked up outside of the store is looked up once in a run, however many cells and stages ask for it."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_known: ContextVar[dict[Hashable, Any] | None] = ContextVar("what is known", default=None)


@contextmanager
def reading_once() -> Iterator[None]:
    """Inside, files are taken to stay as they are: what was read from them is not read again."""
    token = _known.set({} if (outer := _known.get()) is None else outer)
    try:
        yield
    finally:
        _known.reset(token)


def once(function: Callable[P, T]) -> Callable[P, T]:
    """Remember what the function gave for equal arguments, inside `reading_once`."""

    @wraps(function)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> T:
        known = _known.get()
        if known is None:
            return function(*args, **kwargs)
        key: Hashable = (function, args, *kwargs.items())
        try:
            hash(key)
        except TypeError:  # a mapping among the arguments
            key = (function, repr((args, kwargs)))
        if key not in known:
            known[key] = function(*args, **kwargs)
        return known[key]

    return remembered
