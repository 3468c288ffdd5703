"""Tombola finds sparse and robust subnetworks (winning tickets) in pre-trained language models, and ships them.

Heavy imports (torch, transformers) happen when a name is first used, so `import tombola` is quick. The functions of
`tombola.api` are available here too, except `shrink` and `report`: in this namespace, these names are packages.
"""

from typing import TYPE_CHECKING

from tombola.errors import TombolaError
from tombola.foundations.lazy import lazily
from tombola.shrink.registration import install
from tombola.version import __version__

install()  # lets AutoModel read shrunk tickets

if TYPE_CHECKING:
    from tombola.api import (
        attack,
        catalogue,
        compare,
        compress,
        doctor,
        evaluate,
        export,
        inspect,
        predict,
        prune,
        quickstart,
        run,
        share,
        study,
        transfer,
        validate,
    )
    from tombola.api.pruning import Pruning
    from tombola.attacks.report import AttackReport
    from tombola.masks import Mask, Scores, Units, draw
    from tombola.results.compression import Compression
    from tombola.results.result import Result, Study
    from tombola.tasks import Task
    from tombola.tickets.multitask import MultiTaskTicket
    from tombola.tickets.ticket import Ticket
    from tombola.training import KeepMask
    from tombola.training.selective import RoseTrainer, Selection

_HOME = {
    "AttackReport": "attacks.report",
    "Compression": "results.compression",
    "KeepMask": "training",
    "Mask": "masks",
    "MultiTaskTicket": "tickets.multitask",
    "Pruning": "api.pruning",
    "Result": "results.result",
    "RoseTrainer": "training.selective",
    "Scores": "masks",
    "Selection": "training.selective",
    "Study": "results.result",
    "Task": "tasks",
    "Ticket": "tickets.ticket",
    "Units": "masks",
    "attack": "api",
    "catalogue": "api",
    "compare": "api",
    "compress": "api",
    "doctor": "api",
    "draw": "masks",
    "evaluate": "api",
    "export": "api",
    "inspect": "api",
    "predict": "api",
    "prune": "api",
    "quickstart": "api",
    "run": "api",
    "share": "api",
    "study": "api",
    "transfer": "api",
    "validate": "api",
}

__all__ = [
    "AttackReport",
    "Compression",
    "KeepMask",
    "Mask",
    "MultiTaskTicket",
    "Pruning",
    "Result",
    "RoseTrainer",
    "Scores",
    "Selection",
    "Study",
    "Task",
    "Ticket",
    "TombolaError",
    "Units",
    "__version__",
    "attack",
    "catalogue",
    "compare",
    "compress",
    "doctor",
    "draw",
    "evaluate",
    "export",
    "inspect",
    "predict",
    "prune",
    "quickstart",
    "run",
    "share",
    "study",
    "transfer",
    "validate",
]

__getattr__ = lazily(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
