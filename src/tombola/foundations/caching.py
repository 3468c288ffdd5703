"""A cache for one run: files are read once, however many cells and stages ask for them."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_cache: ContextVar[dict[Hashable, Any] | None] = ContextVar("run cache", default=None)


Cache = dict[Hashable, Any]


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
            hash(key)
        except TypeError:  # a mapping among the arguments
            key = (function, repr((args, kwargs)))
        if key not in cache:
            cache[key] = function(*args, **kwargs)
        kept: T = cache[key]
        return kept

    return cached
