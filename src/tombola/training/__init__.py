"""Training on `transformers.Trainer`: deterministic, resumable, under a mask.

Imported on first use: `transformers.Trainer` takes seconds to load, and a recipe needs only the settings.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tombola.training.keep_mask import KeepMask
    from tombola.training.log import TrainLog
    from tombola.training.precision import resolve_precision
    from tombola.training.run import train
    from tombola.training.seeding import fresh_head, seeded
    from tombola.training.settings import TrainSettings

_HOMES = {
    "KeepMask": "keep_mask",
    "TrainLog": "log",
    "TrainSettings": "settings",
    "fresh_head": "seeding",
    "resolve_precision": "precision",
    "seeded": "seeding",
    "train": "run",
}

__all__ = [
    "KeepMask",
    "TrainLog",
    "TrainSettings",
    "fresh_head",
    "resolve_precision",
    "seeded",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
