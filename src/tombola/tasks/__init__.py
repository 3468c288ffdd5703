"""Tasks as data files, their splits in memory, and the tokenised arrays that models read."""

from tombola.tasks.encoding import Collate, Encoded, encode, position_limit
from tombola.tasks.split import Split
from tombola.tasks.task import Task, task_names, validate

__all__ = ["Collate", "Encoded", "Split", "Task", "encode", "position_limit", "task_names", "validate"]
