"""Multi-task training in which tasks share tickets: one encoder, a head and a mask for each. (Super Tickets, section 5)

Imported on first use, as training is: a command that only reads a recipe need not load the Trainer.
"""

from typing import TYPE_CHECKING

from tombola.lazy import lazily

if TYPE_CHECKING:
    from tombola.sharing.model import SharedModel
    from tombola.sharing.recipe import Sampling, ShareRecipe
    from tombola.sharing.result import ShareResult
    from tombola.sharing.running import share
    from tombola.sharing.ticket import MultiTaskTicket
    from tombola.sharing.training import train_shared

_HOME = {
    "MultiTaskTicket": "ticket",
    "Sampling": "recipe",
    "ShareRecipe": "recipe",
    "ShareResult": "result",
    "SharedModel": "model",
    "share": "running",
    "train_shared": "training",
}

__all__ = [
    "MultiTaskTicket",
    "Sampling",
    "ShareRecipe",
    "ShareResult",
    "SharedModel",
    "share",
    "train_shared",
]

__getattr__ = lazily(__name__, _HOME)
