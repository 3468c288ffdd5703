"""What is remembered for a while: files that a run has read, and objects that a plan has made."""

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
    """Inside, files are taken to stay as they are: `cached_in_run` functions remember what they returned.

    Args:
        known: What was remembered before, to go on with it; inside another cache that one is used.
    """
    outer = _cache.get()
    cache = outer if outer is not None else known if known is not None else {}
    token = _cache.set(cache)
    try:
        yield cache
    finally:
        _cache.reset(token)


def cached_in_run(function: Callable[P, T]) -> Callable[P, T]:
    """Remember the function's results for equal arguments, inside `run_cache`."""

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
    """Inside, `shared` makes each object once."""
    made = _made.get()
    token = _made.set(made if made is not None else {})
    try:
        yield
    finally:
        _made.reset(token)


PLAIN = frozenset((int, float, str))


def shared(make: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `make` returns for these arguments; inside `sharing`, the same object for the same arguments.

    Plain values are the same if their types and values are, all others only if they are one object. This is cheap,
    and never takes 1 for True, or for 1.0, which equal settings may differ in.

    Args:
        make: A class or function whose result depends on its arguments alone, and is never changed.
        *args: Its arguments.
        **kwargs: Its arguments by keyword.
    """
    made = _made.get()
    if made is None:
        return make(*args, **kwargs)
    given = (*args, *kwargs.values())
    key = (make, *kwargs, *[(type(one), one) if type(one) in PLAIN else id(one) for one in given])
    if key not in made:
        made[key] = (
            make(*args, **kwargs),
            given,
        )  # holds the arguments too: an id is free for others after its object
    kept: T = made[key][0]
    return kept
