"""Tombola draws sparse and robust winning tickets from pre-trained language models, and ships them.

Heavy imports (torch, transformers) happen when a name is first used, so `import tombola` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tombola.errors import TombolaError
from tombola.shrink.registration import install
from tombola.version import __version__

install()  # lets AutoModel read shrunk tickets

if TYPE_CHECKING:
    from tombola.attacks import attack
    from tombola.judging import evaluate
    from tombola.masks import Mask, Scores, Units, draw
    from tombola.results import Result
    from tombola.running import run
    from tombola.sharing import MultiTaskTicket, share
    from tombola.studying import Study, study
    from tombola.tasks import Task
    from tombola.ticket import Ticket
    from tombola.training import KeepMask
    from tombola.transferring import transfer

_HOME = {
    "attack": "tombola.attacks",
    "KeepMask": "tombola.training",
    "Mask": "tombola.masks",
    "MultiTaskTicket": "tombola.sharing",
    "Result": "tombola.results",
    "Scores": "tombola.masks",
    "Task": "tombola.tasks",
    "Ticket": "tombola.ticket",
    "Units": "tombola.masks",
    "draw": "tombola.masks",
    "transfer": "tombola.transferring",
    "evaluate": "tombola.judging",
    "run": "tombola.running",
    "Study": "tombola.studying",
    "study": "tombola.studying",
    "share": "tombola.sharing",
}

__all__ = [
    "KeepMask",
    "Mask",
    "MultiTaskTicket",
    "Result",
    "Scores",
    "Study",
    "Task",
    "Ticket",
    "TombolaError",
    "Units",
    "__version__",
    "attack",
    "draw",
    "evaluate",
    "run",
    "share",
    "study",
    "transfer",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tombola' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
