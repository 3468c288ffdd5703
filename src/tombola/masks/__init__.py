"""Masks over the prunable units of a model: what they cover, their algebra, drawing and storing them."""

from tombola.masks.base import Base, fingerprint, geometry
from tombola.masks.draw import Scope, draw, removals
from tombola.masks.groups import Granularity, Group, Part, UnitsName
from tombola.masks.layout import Layout, Matrix
from tombola.masks.mask import Mask
from tombola.masks.scores import Scores
from tombola.masks.storage import MASK
from tombola.masks.units import Units

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
