"""Registries: how a name in a recipe finds the class or function that serves it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Generic, TypeVar

from tombola.errors import PluginError, UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """Things of one kind by name: the only list of them. A new entry is one file that registers itself.

    Args:
        kind: What an entry is, for messages: "attack".
    """

    _all: ClassVar[weakref.WeakSet[Registry[Any]]] = weakref.WeakSet()

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        self._modules: dict[str, str] = {}
        Registry._all.add(self)

    def __call__(self, name: str, module: str | None = None) -> Callable[[T], T]:
        """Register the decorated object under `name`."""

        def register(entry: T) -> T:
            if name in self._entries:
                raise PluginError(f"{self.kind} {name!r} exists already: choose another name")
            self._entries[name] = entry
            self._modules[name] = module or str(getattr(entry, "__module__", ""))
            return entry

        return register

    def __getitem__(self, name: str) -> T:
        try:
            return self._entries[name]
        except (KeyError, TypeError):
            raise UnknownName(self.kind, name, self._entries) from None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def items(self) -> list[tuple[str, T]]:
        """The (name, entry) pairs, in order of registration."""
        return list(self._entries.items())

    @classmethod
    def forget(cls, module: str) -> None:
        """Remove from every registry what a module registered."""
        for registry in cls._all:
            for name in [name for name, home in registry._modules.items() if home == module]:
                del registry._entries[name], registry._modules[name]
