"""Defenses, which correct a text before the tokenizer sees it, in training, evaluation, attacks and serving alike."""

from tombola.defenses.base import (
    DEFENSE,
    Chain,
    Defense,
    DefenseList,
    FittedDefense,
    defenses,
    fit_defenses,
    load_defense,
)
from tombola.defenses.spelling import Spelling
from tombola.defenses.unicode import Unicode

__all__ = [
    "DEFENSE",
    "Chain",
    "Defense",
    "DefenseList",
    "FittedDefense",
    "Spelling",
    "Unicode",
    "defenses",
    "fit_defenses",
    "load_defense",
]
