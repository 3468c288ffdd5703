"""Tasks as data files, their splits in memory, and the tokenised arrays that models read."""

from typing import TYPE_CHECKING

from tombola.foundations.lazy import lazily
from tombola.tasks.questions import Answers
from tombola.tasks.split import Split
from tombola.tasks.task import HOLDOUT, Task, register_task, task_names

if TYPE_CHECKING:
    from tombola.tasks.blocks import Blocks, MaskTokens
    from tombola.tasks.encoding import Collate, Encoded, fitting_length, position_limit
    from tombola.tasks.kinds import collate_of, encode
    from tombola.tasks.windows import Windows

_HOME = {
    "Blocks": "blocks",
    "Collate": "encoding",
    "Encoded": "encoding",
    "MaskTokens": "blocks",
    "Windows": "windows",
    "collate_of": "kinds",
    "encode": "kinds",
    "fitting_length": "encoding",
    "position_limit": "encoding",
}

__all__ = [
    "HOLDOUT",
    "Answers",
    "Blocks",
    "Collate",
    "Encoded",
    "MaskTokens",
    "Split",
    "Task",
    "Windows",
    "collate_of",
    "encode",
    "fitting_length",
    "position_limit",
    "register_task",
    "task_names",
]

__getattr__ = lazily(__name__, _HOME)
