"""A control: the sign of every prunable weight is turned."""

from typing import Literal

from tombola.masks import Units
from tombola.models.controls import Control, controls


@controls.register
class Negate(Control):
    """Turn the signs of all prunable weights."""

    kind: Literal["negate"] = "negate"

    def apply(self, model, seed):
        for weight in Units.of(model, "weight").matrices(model).values():
            weight.neg_()
