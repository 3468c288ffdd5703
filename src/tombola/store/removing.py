"""Remove the stages that only one run needs, or a single stage, and measure the disk space of each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tombola.errors import TombolaError
from tombola.store.garbage import Item, discard, items
from tombola.store.roots import Root, damaged_roots, place_of, roots
from tombola.store.store import Store

SHORTEST = 4
"""The fewest characters of a key that identify a stage."""
SHOWN = 5


@dataclass(frozen=True)
class Removal:
    """The stages to delete.

    Attributes:
        items: The stages.
        run: The run that they belong to; None if a single stage was requested.
        shared: The number of the run's stages to keep, since other runs need them.
        needed_by: The results that need the requested stage.
    """

    items: tuple[Item, ...]
    run: Root | None = None
    shared: int = 0
    needed_by: tuple[Path, ...] = ()

    def carry_out(self, store: Store) -> list[Item]:
        """Delete the stages, except those that another process works on, and return the deleted ones."""
        return discard(store, self.items, self.run)


@dataclass(frozen=True)
class RunSize:
    """The disk space of a run's stages.

    Attributes:
        result: The run's result; None for stages that no run needs.
        stages: The number of its stages in the store.
        bytes: Their size.
        alone: The size of those that no other run needs.
    """

    result: Path | None
    stages: int
    bytes: int
    alone: int


def find_removal(store: Store, what: str) -> Removal:
    """Find the stages of a run's folder, or the stage with a given name or key.

    Args:
        store: The store.
        what: The folder or `results.json` of a run, or `KIND/KEY` or `KEY`; the first characters of the key suffice.

    Raises:
        TombolaError: If it matches nothing or several stages, or if a run that needs it is active.
    """
    alive = [root for root in roots(store) if root.alive]
    place = Path(what).expanduser()
    run = next(
        (root for root in alive if root.result == place_of(place) or root.result.parent == place.resolve()),
        None,
    )
    if run is not None:
        return _of_run(store, run, alive)
    if place.exists():
        raise TombolaError(f"{what} is not a run that this store knows: see `tombola store du`")
    named = [item for item in items(store) if _is_named(item, what)]
    matches = [item for item in named if item.name.endswith(f"/{what.rpartition('/')[2]}")] or named
    if not matches:
        raise TombolaError(
            f"{what!r} is neither a run nor a stage of {store.root}: pass the folder of a run, or at least the first "
            f"{SHORTEST} characters of a key from `tombola store ls`"
        )
    if len(matches) > 1:
        names = ", ".join(item.name for item in matches[:SHOWN]) + (" …" if len(matches) > SHOWN else "")
        raise TombolaError(f"{what!r} matches {len(matches)} stages ({names}): pass more of the key")
    needing = [root for root in alive if matches[0].stage in root.stages]
    _refuse_running(needing)
    return Removal((matches[0],), needed_by=tuple(root.result for root in needing))


def sizes_by_run(store: Store) -> list[RunSize]:
    """Return the disk space of each run's stages, the largest first, then that of stages that no run needs."""
    alive = [root for root in roots(store) if root.alive]
    stored = list(items(store))
    users = {item.name: [root for root in alive if item.stage in root.stages] for item in stored}
    runs = []
    for root in alive:
        of_run = [item for item in stored if item.stage in root.stages]
        alone = sum(item.bytes for item in of_run if users[item.name] == [root])
        runs.append(RunSize(root.result, len(of_run), sum(item.bytes for item in of_run), alone))
    runs.sort(key=lambda run: -run.bytes)
    loose = [item for item in stored if not users[item.name]]
    size = sum(item.bytes for item in loose)
    return [*runs, RunSize(None, len(loose), size, size)] if loose else runs


def _of_run(store: Store, run: Root, alive: Sequence[Root]) -> Removal:
    _refuse_running([run])
    if damaged := damaged_roots(store):
        raise TombolaError(f"cannot determine which stages other runs need: {damaged[0]}")
    shared = {name for root in alive if root is not run for name in root.stages}
    of_run = [item for item in items(store) if item.stage in run.stages]
    gone = tuple(item for item in of_run if item.stage not in shared)
    return Removal(gone, run=run, shared=len(of_run) - len(gone))


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
                f"{root.result.parent} is running, or was running less than 15 minutes ago: try again later"
            )
