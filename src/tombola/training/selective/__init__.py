"""Selective updates: each step of AdamW freezes the weights of high risk. (ROSE, EMNLP 2022)

Loaded on first use, like all of training: a recipe needs only the settings.
"""

from typing import TYPE_CHECKING

from tombola.foundations.lazy import lazily

if TYPE_CHECKING:
    from tombola.training.selective.callback import KeepFreezing
    from tombola.training.selective.freezing import Freezing
    from tombola.training.selective.masks import Candidates
    from tombola.training.selective.objective import DropoutRisk, TwoDraws
    from tombola.training.selective.optimizer import SelectiveAdamW
    from tombola.training.selective.settings import Selection
    from tombola.training.selective.trainer import RoseTrainer

_HOME = {
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

__getattr__ = lazily(__name__, _HOME)
