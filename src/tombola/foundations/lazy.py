"""Imports on first use, so that reading a recipe loads neither torch nor a Trainer."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for the package that imports each name from its submodule on first use."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return find


class _LazyModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


def lazy_module(name: str) -> Any:
    """Return a proxy for a module, which is imported when an attribute is first used."""
    return _LazyModule(name)


class _Postponed(_LazyModule):
    def __getattr__(self, name: str) -> Any:
        _forget(self)
        return super().__getattr__(name)


@contextmanager
def postponed(name: str) -> Iterator[None]:
    """Make `import name` return a proxy in this context; the module is imported when an attribute is first used.

    For modules that another package imports eagerly but seldom needs.

    Args:
        name: The module. Has no effect if it is already imported, or not installed.
    """
    if name in sys.modules or (spec := find_spec(name)) is None:
        yield
        return
    module = _Postponed(name)
    module.__spec__ = spec
    sys.modules[name] = module
    try:
        yield
    finally:
        _forget(module)


def _forget(module: ModuleType) -> None:
    if sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]
