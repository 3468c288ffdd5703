"""Deterministic, resumable training under a mask, based on `transformers.Trainer`.

Loaded on first use: importing `transformers.Trainer` takes seconds, and a recipe needs only the settings.
"""

from typing import TYPE_CHECKING

from tombola.foundations.lazy import lazily

if TYPE_CHECKING:
    from tombola.training.keep_mask import KeepMask
    from tombola.training.log import TrainLog
    from tombola.training.run import train
    from tombola.training.settings import TrainSettings

_HOME = {
    "KeepMask": "keep_mask",
    "TrainLog": "log",
    "TrainSettings": "settings",
    "train": "run",
}

__all__ = [
    "KeepMask",
    "TrainLog",
    "TrainSettings",
    "train",
]

__getattr__ = lazily(__name__, _HOME)
