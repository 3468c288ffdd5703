"""Published attacks on text classifiers, run on many examples at once, with exact query counts."""

from typing import TYPE_CHECKING

from tombola.attacks.base import Attack, Tools, attacks, configure
from tombola.attacks.bert_attack import BertAttack
from tombola.attacks.deepwordbug import DeepWordBug
from tombola.attacks.embedding_swap import EmbeddingSwap
from tombola.attacks.pwws import PWWS
from tombola.attacks.random_substitution import RandomSubstitution
from tombola.attacks.resources import MissingResource, Resources
from tombola.attacks.text import Text
from tombola.attacks.textbugger import TextBugger
from tombola.attacks.textfooler import TextFooler
from tombola.foundations.lazy import lazily

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
    "configure",
]

__getattr__ = lazily(__name__, {"AttackReport": "report", "attack": "run"})
