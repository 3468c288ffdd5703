"""Tasks as data files, their splits in memory, and the tokenised arrays that models read."""

from tombola.tasks.blocks import Blocks, MaskTokens
from tombola.tasks.encoding import Collate, Encoded, fitting_length, position_limit
from tombola.tasks.kinds import collate_of, encode
from tombola.tasks.questions import Answers
from tombola.tasks.split import Split
from tombola.tasks.task import HOLDOUT, Task, task_names, validate
from tombola.tasks.windows import Windows

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
    "task_names",
    "validate",
]
