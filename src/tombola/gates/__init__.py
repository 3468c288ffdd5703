"""Learned masks: gates that turn scores into factors of weights, and budgets that say how many may stay open.

Any gate goes with any budget, over units of any granularity. `Gating` holds the scores and does what one
optimizer step asks of them; `training.gated` trains them.
"""

from typing import Annotated

from pydantic import Field

from tombola.gates.base import Budget, Gate
from tombola.gates.bernoulli import Bernoulli
from tombola.gates.exact import Exact
from tombola.gates.gating import Gating
from tombola.gates.hard_concrete import HardConcrete
from tombola.gates.l0 import L0
from tombola.gates.lagrangian import Lagrangian
from tombola.gates.sign import Sign
from tombola.gates.threshold import Threshold

AnyGate = Annotated[HardConcrete | Threshold | Sign | Bernoulli, Field(discriminator="kind")]
AnyBudget = Annotated[L0 | Lagrangian | Exact, Field(discriminator="kind")]

__all__ = [
    "L0",
    "AnyBudget",
    "AnyGate",
    "Bernoulli",
    "Budget",
    "Exact",
    "Gate",
    "Gating",
    "HardConcrete",
    "Lagrangian",
    "Sign",
    "Threshold",
]
