"""Names to methods: how a recipe's word finds the function that carries it out."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from tombola.errors import UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """Methods of one kind by name. A new method is one file and one line that registers it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def __call__(self, name: str) -> Callable[[T], T]:
        """Register the decorated object under `name`."""

        def register(entry: T) -> T:
            if name in self._entries:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._entries[name] = entry
            return entry

        return register

    def __getitem__(self, name: str) -> T:
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownName(self.kind, name, self._entries) from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def items(self) -> list[tuple[str, T]]:
        """The registered (name, method) pairs, in order of registration."""
        return list(self._entries.items())
