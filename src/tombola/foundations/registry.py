"""Registries, which map names in recipes to classes and functions."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar

from tombola.errors import PluginError, UnknownName

T = TypeVar("T")

PACKAGE = __name__.partition(".")[0]


def is_builtin(module: str) -> bool:
    """Return whether a module is part of this package."""
    return module == PACKAGE or module.startswith(f"{PACKAGE}.")


class Registry(Generic[T]):
    """All things of one kind by name. A new entry is one file that registers itself.

    Args:
        kind: What an entry is, for messages: "attack".
        modules: The modules of this package that register entries. They are imported on first use of the registry, so
            that importing the registry itself stays cheap.
    """

    _all: ClassVar[weakref.WeakSet[Registry[Any]]] = weakref.WeakSet()
    _homes: ClassVar[dict[int, str]] = {}
    """The module that registered an entry, by the id of the entry or its settings class."""
    _outside: ClassVar[set[int]] = set()
    """The ids of entries from outside the package."""

    def __init__(self, kind: str, modules: Sequence[str] = ()) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        self._modules: dict[str, str] = {}
        self._pending = tuple(modules)
        self._lock = threading.RLock()
        Registry._all.add(self)

    def __call__(self, name: str) -> Callable[[T], T]:
        """Register the decorated object under `name`."""

        def register(entry: T) -> T:
            home = _registering_module()
            if not is_builtin(home):
                self._import_builtin()
            if name in self._entries:
                raise PluginError(f"{self.kind} {name!r} already exists: choose another name")
            self._entries[name] = entry
            self._modules[name] = home
            for thing in _identities(entry):
                Registry._homes[id(thing)] = home
                if not is_builtin(home):
                    Registry._outside.add(id(thing))
            return entry

        return register

    def __getitem__(self, name: str) -> T:
        self._import_builtin()
        try:
            return self._entries[name]
        except (KeyError, TypeError):
            raise UnknownName(self.kind, name, self._entries) from None

    def __contains__(self, name: object) -> bool:
        self._import_builtin()
        return isinstance(name, str) and name in self._entries

    def __iter__(self) -> Iterator[str]:
        self._import_builtin()
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        self._import_builtin()
        return len(self._entries)

    def items(self) -> list[tuple[str, T]]:
        """Return the (name, entry) pairs, by name."""
        return [(name, self._entries[name]) for name in self]

    def _import_builtin(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, ()
            try:
                for module in pending:
                    import_module(module)
            except BaseException:
                self._pending = pending
                raise

    @classmethod
    def home_of(cls, entry: object) -> str | None:
        """Return the module that registered an entry, or an entry with this settings class; None if there is none."""
        return cls._homes.get(id(entry))

    @classmethod
    def is_extended(cls) -> bool:
        """Return whether anything from outside the package is registered."""
        return bool(cls._outside)

    @classmethod
    def forget(cls, module: str) -> None:
        """Remove everything that a module registered from all registries."""
        for registry in cls._all:
            for name in [name for name, home in registry._modules.items() if home == module]:
                for thing in _identities(registry._entries[name]):
                    cls._homes.pop(id(thing), None)
                    cls._outside.discard(id(thing))
                del registry._entries[name], registry._modules[name]


def _identities(entry: object) -> list[object]:
    """Return the entry and its settings class, if it has one; nothing for plain values."""
    if isinstance(entry, str | bytes | int | float | tuple):
        return []
    settings = getattr(entry, "settings", None)
    return [entry, settings] if isinstance(settings, type) else [entry]


def _registering_module() -> str:
    """Return the module that is registering something: the innermost one outside this package, or one of ours."""
    frame = sys._getframe(1)
    while True:
        module = str(frame.f_globals.get("__name__", ""))
        ours = is_builtin(module) and frame.f_code.co_name != "<module>"
        # The module abc creates the classes that register themselves.
        if frame.f_back is None or not (ours or module == "abc"):
            return module
        frame = frame.f_back
