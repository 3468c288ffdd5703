"""Selective updates: each step of AdamW leaves the weights of high risk as they are. (ROSE, EMNLP 2022)

Imported on first use, like all of training: a recipe needs only the settings.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tombola.training.selective.callback import KeepFreezing
    from tombola.training.selective.freezing import Freezing
    from tombola.training.selective.masks import Candidates
    from tombola.training.selective.objective import DropoutRisk, TwoDraws
    from tombola.training.selective.optimizer import SelectiveAdamW
    from tombola.training.selective.settings import Selection
    from tombola.training.selective.trainer import RoseTrainer

_HOMES = {
    "Candidates": "masks",
    "DropoutRisk": "objective",
    "Freezing": "freezing",
    "KeepFreezing": "callback",
    "RoseTrainer": "trainer",
    "Selection": "settings",
    "SelectiveAdamW": "optimizer",
    "TwoDraws": "objective",
}

__all__ = [
    "Candidates",
    "DropoutRisk",
    "Freezing",
    "KeepFreezing",
    "RoseTrainer",
    "Selection",
    "SelectiveAdamW",
    "TwoDraws",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
