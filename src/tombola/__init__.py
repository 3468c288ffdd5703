"""Tombola draws sparse and robust winning tickets from pre-trained language models, and ships them.

Heavy imports (torch, transformers) happen when a name is first used, so `import tombola` is quick.
"""

from typing import TYPE_CHECKING

from tombola.errors import TombolaError
from tombola.lazy import lazily
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
    "attack": "attacks",
    "KeepMask": "training",
    "Mask": "masks",
    "MultiTaskTicket": "sharing",
    "Result": "results",
    "Scores": "masks",
    "Task": "tasks",
    "Ticket": "ticket",
    "Units": "masks",
    "draw": "masks",
    "transfer": "transferring",
    "evaluate": "judging",
    "run": "running",
    "Study": "studying",
    "study": "studying",
    "share": "sharing",
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

__getattr__ = lazily(__name__, _HOME)


def __dir__() -> list[str]:
    return __all__
