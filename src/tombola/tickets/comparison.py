"""Masks beside each other: overlaps between tasks and methods, unions, intersections. (BERT-Tickets, section 4)"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from pathlib import Path

from tombola.masks import MASK, Mask
from tombola.tickets.ticket import Ticket


@dataclass(frozen=True)
class Comparison:
    """Some masks of one model, by name."""

    masks: dict[str, Mask]

    @classmethod
    def of(cls, sources: Iterable[str | Path]) -> Comparison:
        """Open tickets or mask files."""
        return cls({str(source): open_mask(source) for source in sources})

    def overlaps(self) -> list[list[float]]:
        """The Jaccard overlap of the kept weights of every two masks."""
        masks = list(self.masks.values())
        return [[one.overlap(other) for other in masks] for one in masks]

    def union(self) -> Mask:
        """What at least one of the masks keeps."""
        return reduce(or_, self.masks.values())

    def intersection(self) -> Mask:
        """What all of the masks keep."""
        return reduce(and_, self.masks.values())


def open_mask(what: str | Path) -> Mask:
    """The mask of a ticket, or a mask file itself."""
    path = Path(what)
    if path.is_file():
        return Mask.load(path)
    if (path / MASK).is_file():
        return Mask.load(path / MASK)
    return Ticket.from_pretrained(what).mask
