"""Learned masks: gates turn scores into factors of weights, and budgets limit how many may stay open.

Any gate works with any budget, over units of any granularity. `Gating` holds the scores and performs one optimizer
step on them; `training.gated` trains them.
"""

from typing import TYPE_CHECKING

from tombola.foundations.lazy import lazily
from tombola.gates.base import Budget, Gate, budgets, gates
from tombola.gates.bernoulli import Bernoulli
from tombola.gates.exact import Exact
from tombola.gates.hard_concrete import HardConcrete
from tombola.gates.l0 import L0
from tombola.gates.lagrangian import Lagrangian
from tombola.gates.sign import Sign
from tombola.gates.threshold import Threshold

if TYPE_CHECKING:
    from tombola.gates.gating import Gating

__all__ = [
    "L0",
    "Bernoulli",
    "Budget",
    "Exact",
    "Gate",
    "Gating",
    "HardConcrete",
    "Lagrangian",
    "Sign",
    "Threshold",
    "budgets",
    "gates",
]

__getattr__ = lazily(__name__, {"Gating": "gating"})
