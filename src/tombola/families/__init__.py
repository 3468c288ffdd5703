"""The architectures Tombola can take apart, one data file each."""

from tombola.families.family import Attention, Family, FeedForward, Location, families, family_of

__all__ = ["Attention", "Family", "FeedForward", "Location", "families", "family_of"]
