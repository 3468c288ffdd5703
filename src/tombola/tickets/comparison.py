"""Compare masks: overlaps between tasks and methods, unions, intersections. (BERT-Tickets, section 4)"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from pathlib import Path

from tombola.errors import TombolaError
from tombola.masks import MASK, Mask
from tombola.tickets.multitask import MultiTaskTicket, is_multi_task, require_task
from tombola.tickets.saved import SavedTicket, path_of
from tombola.tickets.ticket import Ticket


@dataclass(frozen=True)
class Comparison:
    """Several masks of one model, by name."""

    masks: dict[str, Mask]

    @classmethod
    def of(cls, sources: Iterable[SavedTicket | str | Path], task: str | None = None) -> Comparison:
        """Open tickets or mask files.

        Args:
            sources: Tickets, multi-task tickets or mask files.
            task: The task of multi-task tickets; by default all of them.
        """
        return cls({name: mask for source in sources for name, mask in open_masks(source, task).items()})

    def overlaps(self) -> list[list[float]]:
        """Return the matrix of pairwise Jaccard overlaps of the kept weights."""
        masks = list(self.masks.values())
        return [[mask.overlap(other) for other in masks] for mask in masks]

    def union(self) -> Mask:
        """Return the mask of all units that at least one mask keeps."""
        return reduce(or_, self.masks.values())

    def intersection(self) -> Mask:
        """Return the mask of the units that all masks keep."""
        return reduce(and_, self.masks.values())


def open_masks(source: SavedTicket | str | Path, task: str | None = None) -> dict[str, Mask]:
    """Load the mask of a ticket or mask file, or the masks of a multi-task ticket, by name.

    Args:
        source: A ticket, a multi-task ticket (opened, a folder or a hub id) or a mask file.
        task: The task of a multi-task ticket; by default all of them.
    """
    path = path_of(source)
    source = path if isinstance(source, SavedTicket) else source
    if is_multi_task(path):
        ticket = MultiTaskTicket.from_pretrained(path)
        tasks = ticket.tasks if task is None else [require_task(ticket, task)]
        return {f"{source}: {name}": ticket.mask(name) for name in tasks}
    if task is not None:
        raise TombolaError(f"{source} is not a multi-task ticket: leave out --task")
    if path.is_file() or (path / MASK).is_file():
        return {str(source): Mask.load(path if path.is_file() else path / MASK)}
    return {str(source): Ticket.from_pretrained(source).mask}
