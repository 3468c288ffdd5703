"""Temporary caches: files that a run has read, and objects that a plan has created."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

MISSING = object()

Cache = dict[Hashable, Any]

_cache: ContextVar[Cache | None] = ContextVar("run cache", default=None)
_made: ContextVar[Cache | None] = ContextVar("shared objects", default=None)


@contextmanager
def run_cache(known: Cache | None = None) -> Iterator[Cache]:
    """Assume that files do not change in this context, so that `cached_in_run` functions can cache their results.

    Args:
        known: An earlier cache to continue; inside another cache, that one is used.
    """
    outer = _cache.get()
    cache = outer if outer is not None else known if known is not None else {}
    token = _cache.set(cache)
    try:
        yield cache
    finally:
        _cache.reset(token)


def cached_in_run(function: Callable[P, T]) -> Callable[P, T]:
    """Cache the function's results by arguments inside `run_cache`."""

    @wraps(function)
    def cached(*args: P.args, **kwargs: P.kwargs) -> T:
        cache = _cache.get()
        if cache is None:
            return function(*args, **kwargs)
        key: Hashable = (function, args, *kwargs.items())
        try:
            kept = cache.get(key, MISSING)
        except TypeError:  # a mapping among the arguments
            key = (function, repr((args, kwargs)))
            kept = cache.get(key, MISSING)
        if kept is MISSING:
            kept = cache[key] = function(*args, **kwargs)
        return cast(T, kept)

    return cached


@contextmanager
def sharing() -> Iterator[None]:
    """Let `shared` create each object only once in this context."""
    made = _made.get()
    token = _made.set(made if made is not None else {})
    try:
        yield
    finally:
        _made.reset(token)


PLAIN = frozenset((int, float, str))


def shared(make: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of `make` for these arguments; inside `sharing`, the same object for the same arguments.

    Plain values are the same if type and value are equal, all others only if they are the same object. This is cheap,
    and never confuses 1 with True or 1.0, which equal settings may differ in.

    Args:
        make: A class or function whose result depends only on its arguments, and is never modified.
        *args: Its arguments.
        **kwargs: Its arguments by keyword.
    """
    made = _made.get()
    if made is None:
        return make(*args, **kwargs)
    arguments = (*args, *kwargs.values())
    key = (
        make,
        *kwargs,
        *[(type(value), value) if type(value) in PLAIN else id(value) for value in arguments],
    )
    if key not in made:
        # The arguments are kept alive too: an id may be reused once its object is gone.
        made[key] = make(*args, **kwargs), arguments
    kept: T = made[key][0]
    return kept
