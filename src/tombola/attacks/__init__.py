"""Attacks on text classifiers: published ones, run many examples at once, with exact query counts."""

from typing import TYPE_CHECKING, Any

from tombola.attacks.base import Attack, Tools, attacks
from tombola.attacks.bert_attack import BertAttack
from tombola.attacks.deepwordbug import DeepWordBug
from tombola.attacks.embedding_swap import EmbeddingSwap
from tombola.attacks.pwws import PWWS
from tombola.attacks.random_substitution import RandomSubstitution
from tombola.attacks.resources import MissingResource, Resources
from tombola.attacks.text import Text
from tombola.attacks.textbugger import TextBugger
from tombola.attacks.textfooler import TextFooler

if TYPE_CHECKING:
    from tombola.attacks.report import AttackReport
    from tombola.attacks.run import attack

__all__ = [
    "PWWS",
    "Attack",
    "AttackReport",
    "BertAttack",
    "DeepWordBug",
    "EmbeddingSwap",
    "MissingResource",
    "RandomSubstitution",
    "Resources",
    "Text",
    "TextBugger",
    "TextFooler",
    "Tools",
    "attack",
    "attacks",
]


def __getattr__(name: str) -> Any:
    """`attack` and `AttackReport` bring torch and scipy along, so they are imported when first used."""
    if name == "attack":
        from tombola.attacks.run import attack

        return attack
    if name == "AttackReport":
        from tombola.attacks.report import AttackReport

        return AttackReport
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
