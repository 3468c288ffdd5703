"""Removing stages on request: those that only one run needs, or a single one; and how much room each run takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tombola.errors import TombolaError
from tombola.store.garbage import Item, Root, discard, items, roots
from tombola.store.store import Store

SHORTEST = 4
"""Characters of a key, at least, that a stage is named by."""
SHOWN = 5


@dataclass(frozen=True)
class Removal:
    """What a removal deletes.

    Attributes:
        items: The stages.
        run: The run whose stages they are; None where a stage was named.
        shared: How many of its stages stay, since other runs need them.
        needed_by: The results that need a stage that was named.
    """

    items: tuple[Item, ...]
    run: Root | None = None
    shared: int = 0
    needed_by: tuple[Path, ...] = ()

    def carry_out(self, store: Store) -> list[Item]:
        """Delete the stages; those that another process works on stay. Returns what was deleted."""
        gone = discard(store, self.items)
        if self.run is not None:
            self.run.file.unlink(missing_ok=True)
        return gone


@dataclass(frozen=True)
class RunSize:
    """The room that the stages of a run take.

    Attributes:
        result: The run's result; None for stages that no run needs.
        stages: How many stages it has in the store.
        bytes: How large they are.
        alone: How much of that no other run needs.
    """

    result: Path | None
    stages: int
    bytes: int
    alone: int


def find_removal(store: Store, what: str) -> Removal:
    """What to delete for a run's folder, or for the beginning of a stage's name or key.

    Args:
        store: The store.
        what: The folder or `results.json` of a run, or `KIND/KEY` or `KEY`, of which the first characters will do.

    Raises:
        TombolaError: If it names nothing or several stages, or if a run that needs it is at work.
    """
    alive = [root for root in roots(store) if root.alive]
    place = Path(what).expanduser().absolute()
    run = next((root for root in alive if place in (root.result, root.result.parent)), None)
    if run is not None:
        return _of_run(store, run, alive)
    if place.exists():
        raise TombolaError(
            f"{what} is no run that this store knows: `tombola store du` lists those that it does"
        )
    found = [item for item in items(store) if _is_named(item, what)]
    if not found:
        raise TombolaError(
            f"{what!r} names no run and no stage of {store.root}: give the folder of a run, or the first "
            f"{SHORTEST} or more characters of a key that `tombola store ls` shows"
        )
    if len(found) > 1:
        names = ", ".join(item.name for item in found[:SHOWN]) + (" …" if len(found) > SHOWN else "")
        raise TombolaError(f"{what!r} names {len(found)} stages ({names}): give more of its key")
    needing = [root for root in alive if found[0].name in root.stages]
    _refuse_running(needing)
    return Removal((found[0],), needed_by=tuple(root.result for root in needing))


def sizes_by_run(store: Store) -> list[RunSize]:
    """The room that the stages of each run take, the largest first; then that of stages that no run needs."""
    alive = [root for root in roots(store) if root.alive]
    stored = list(items(store))
    users = {item.name: [root for root in alive if item.name in root.stages] for item in stored}
    runs = []
    for root in alive:
        own = [item for item in stored if item.name in root.stages]
        alone = sum(item.bytes for item in own if users[item.name] == [root])
        runs.append(RunSize(root.result, len(own), sum(item.bytes for item in own), alone))
    runs.sort(key=lambda run: -run.bytes)
    loose = [item for item in stored if not users[item.name]]
    size = sum(item.bytes for item in loose)
    return [*runs, RunSize(None, len(loose), size, size)] if loose else runs


def _of_run(store: Store, run: Root, alive: Sequence[Root]) -> Removal:
    _refuse_running([run])
    shared = {name for root in alive if root is not run for name in root.stages}
    own = [item for item in items(store) if item.name in run.stages]
    gone = tuple(item for item in own if item.name not in shared)
    return Removal(gone, run=run, shared=len(own) - len(gone))


def _is_named(item: Item, what: str) -> bool:
    kind, _, key = item.name.partition("/")
    wanted_kind, slash, wanted = what.rpartition("/")
    if slash and wanted_kind != kind:
        return False
    return len(wanted) >= SHORTEST and key.startswith(wanted)


def _refuse_running(needing: Sequence[Root]) -> None:
    for root in needing:
        if root.running:
            raise TombolaError(
                f"{root.result.parent} is at work, or was less than a quarter of an hour ago: wait"
            )
