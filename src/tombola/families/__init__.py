"""The architectures that Tombola can prune, one data file each."""

from tombola.families.family import (
    Attention,
    ConfigKeys,
    Family,
    FeedForward,
    Location,
    families,
    family_of,
    family_of_type,
    register_family,
)

__all__ = [
    "Attention",
    "ConfigKeys",
    "Family",
    "FeedForward",
    "Location",
    "families",
    "family_of",
    "family_of_type",
    "register_family",
]
