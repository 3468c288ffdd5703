"""The folder of a run. It belongs to one recipe; processes that run the same recipe may share it."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from tombola.errors import TombolaError
from tombola.foundations.folders import absolute, portable
from tombola.foundations.paths import inside, path_part
from tombola.pipeline.engines.ranks import is_main
from tombola.pipeline.plan import Plan
from tombola.results.record import CellResult, RunRecord
from tombola.results.result import RESULTS, Result
from tombola.tickets.multitask import SHARE
from tombola.tickets.ticket import TICKET

RUNNING = ".running"
"""The folder with the locks of running processes, each named after its recipe."""
LOCK = "folder.lock"
SHOWN = 3
"""The number of differing settings that a message lists."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunFolder:
    """The folder for the results of a run.

    Attributes:
        path: The folder.
        previous: The result it already contains, of the same recipe or of a part of its grid.
        replaced: The result of another recipe, which will be replaced.
        conflict: How the recipe of the result that it contains differs, if that is another recipe.
    """

    path: Path
    previous: RunRecord | None = None
    replaced: RunRecord | None = None
    conflict: str | None = None

    def places(self) -> dict[str, str]:
        """Return the paths of earlier tickets and models by `cell_key`: they stay the same when the grid grows.

        Raises:
            TombolaError: If a path points outside the folder: the result may have been tampered with.
        """
        if self.previous is None:
            return {}
        return {
            cell_key(cell.variant, cell.recipe): str(inside(self.path, place).relative_to(self.path))
            for cell in self.previous.cells
            if (place := cell.ticket or cell.model)
        }

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold a lock, so that no other process writes to the folder."""
        with FileLock(self.path / RUNNING / LOCK):
            yield

    def clear(self, record: RunRecord) -> None:
        """Remove the tickets and models of the replaced result.

        Args:
            record: The new result.
        """
        if self.replaced is None:
            return
        new = {place for cell in record.cells for place in _places(cell)}
        for place in {place for cell in self.replaced.cells for place in _places(cell)} - new:
            folder = (self.path / place).resolve()
            written = any((folder / marker).is_file() for marker in (TICKET, SHARE))
            if written and self.path.resolve() in folder.parents:  # never delete outside the folder
                shutil.rmtree(folder, ignore_errors=True)


def require_writable(path: Path) -> None:
    """Raise an error if a folder cannot be written to; create it if it is missing.

    Args:
        path: The folder for the results of a run.
    """
    with _locked(path):
        pass


def recipe_hash(recipe: Mapping[str, Any]) -> str:
    """Return a hash of a recipe, independent of the working directory.

    Args:
        recipe: The recipe, overrides included.
    """
    text = json.dumps(absolute(dict(recipe)), sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def cell_key(variant: str, recipe: Mapping[str, Any]) -> str:
    """Return a key that identifies a cell in any grid.

    Args:
        variant: The cell's variant.
        recipe: The recipe of this cell alone.
    """
    settings = {name: value for name, value in recipe.items() if name not in ("name", "about")}
    return json.dumps([variant, settings], sort_keys=True, default=str)


@contextmanager
def claimed(plan: Plan, output: Path | None, *, replace: bool) -> Iterator[RunFolder]:
    """Yield the folder for the results of a plan, locked against runs of other recipes.

    By default it is `runs/NAME`, or `runs/NAME-2` and so on if `runs/NAME` contains the result of another recipe.

    Args:
        plan: The plan to run.
        output: The requested folder, if any.
        replace: Whether to replace the result of another recipe.

    Raises:
        TombolaError: If the folder is not writable, is in use, or contains the result of another recipe.
    """
    usual = Path("runs") / path_part(plan.name)
    for number in count(1):
        path = output or (usual if number == 1 else usual.with_name(f"{usual.name}-{number}"))
        with ExitStack() as locks_held:
            if is_main():
                locks_held.enter_context(_in_use(path, recipe_hash(plan.recipe)))
            found = _inspect(plan, path)
            if found.conflict is not None and not replace:
                if output is None:
                    continue
                raise TombolaError(
                    f"{path} contains the result of another recipe ({found.conflict}): choose another folder with "
                    "--output, or replace the result with --replace"
                )
            if number > 1:
                logger.warning(
                    "%s contains the result of another recipe, so this one is written to %s", usual, path
                )
            yield found
            return


def _inspect(plan: Plan, path: Path) -> RunFolder:
    """Return the folder with its result: of this plan, of another recipe, or none."""
    if not (path / RESULTS).is_file():
        return RunFolder(path)
    try:
        old = Result.load(path).record
    except TombolaError as error:
        return _inspect_unreadable(plan, path, error)
    if old.recipe_hash == recipe_hash(plan.recipe):
        return RunFolder(path, previous=old)
    planned = {cell_key(cell.cell.variant, portable(cell.cell.raw())) for cell in plan.cells}
    if all(cell_key(cell.variant, cell.recipe) in planned for cell in old.cells):
        return RunFolder(path, previous=old)
    return RunFolder(
        path, replaced=old, conflict=_difference(old.recipe, portable(plan.recipe)) or "other cells"
    )


def _inspect_unreadable(plan: Plan, path: Path, error: TombolaError) -> RunFolder:
    """Return the folder of a result that is damaged or of another version; it is replaced if it is of this recipe."""
    reason, own = str(error).partition(": run the command")[0], recipe_hash(plan.recipe)
    try:
        found = json.loads((path / RESULTS).read_bytes())["recipe_hash"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        found = own  # there is no recipe left that it could belong to
    if found != own:
        return RunFolder(path, conflict=reason)
    logger.warning("%s: it is written again", reason)
    return RunFolder(path)


@contextmanager
def _in_use(path: Path, recipe: str) -> Iterator[None]:
    """Keep runs of other recipes out of a folder. Runs of the same recipe share stages and write the same files."""
    locks = path / RUNNING
    lock = FileLock(locks / f"{recipe}-{uuid.uuid4().hex}.lock", timeout=0)
    with _locked(path):
        if any(other != recipe for other in _running(locks)):
            raise TombolaError(
                f"{path} is in use by a run of another recipe: wait until it has ended, or choose another folder "
                "with --output"
            )
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Create the folder if it is missing, and hold its lock."""
    try:
        (path / RUNNING).mkdir(parents=True, exist_ok=True)
        with FileLock(path / RUNNING / LOCK):
            yield
    except OSError as error:
        raise TombolaError(
            f"cannot write to the output folder {path} ({error.strerror}): choose another one with --output"
        ) from None


def _running(locks: Path) -> list[str]:
    """Return the recipes of running processes, and remove the locks of killed ones."""
    running = []
    for file in locks.glob("*-*.lock"):
        try:
            with FileLock(file, timeout=0):
                file.unlink(missing_ok=True)
        except Timeout:
            running.append(file.name.partition("-")[0])
    return running


def _places(cell: CellResult) -> list[str]:
    return [place for place in (cell.ticket, cell.model) if place is not None]


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Describe the settings in which two recipes differ."""
    before, now = _flat(old), _flat(new)
    differences = [
        f"{key}: {_shortened(before.get(key))} there, {_shortened(now.get(key))} here"
        for key in dict.fromkeys([*before, *now])
        if before.get(key) != now.get(key)
    ]
    more = f"; and {len(differences) - SHOWN} more settings" if len(differences) > SHOWN else ""
    return "; ".join(differences[:SHOWN]) + more


def _flat(raw: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in raw.items():
        if isinstance(value, Mapping) and value:
            flat |= _flat(value, f"{path}{key}.")
        else:
            flat[f"{path}{key}"] = value
    return flat


def _shortened(value: Any) -> str:
    text = "not set" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
