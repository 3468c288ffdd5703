"""Masks over the prunable units of a model: the units, mask algebra, drawing masks from scores, and storage."""

from typing import TYPE_CHECKING

from tombola.foundations.lazy import lazily
from tombola.masks.names import Granularity, Scope, UnitsName

if TYPE_CHECKING:
    from tombola.masks.base import Base, fingerprint, geometry
    from tombola.masks.drawing import draw
    from tombola.masks.groups import Group, Part
    from tombola.masks.layout import Layout, Matrix
    from tombola.masks.mask import Mask
    from tombola.masks.scores import Scores
    from tombola.masks.shares import removals
    from tombola.masks.storage import MASK
    from tombola.masks.units import Units

_HOME = {
    "MASK": "storage",
    "Base": "base",
    "Group": "groups",
    "Layout": "layout",
    "Mask": "mask",
    "Matrix": "layout",
    "Part": "groups",
    "Scores": "scores",
    "Units": "units",
    "draw": "drawing",
    "fingerprint": "base",
    "geometry": "base",
    "removals": "shares",
}

__all__ = [
    "MASK",
    "Base",
    "Granularity",
    "Group",
    "Layout",
    "Mask",
    "Matrix",
    "Part",
    "Scope",
    "Scores",
    "Units",
    "UnitsName",
    "draw",
    "fingerprint",
    "geometry",
    "removals",
]

__getattr__ = lazily(__name__, _HOME)
