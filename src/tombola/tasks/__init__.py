"""Task files, splits in memory, and the tokenised arrays for models."""

from typing import TYPE_CHECKING

from tombola.foundations.lazy import lazily
from tombola.tasks.kinds import collate_of, encode, kind_of, task_kinds
from tombola.tasks.questions import Answers
from tombola.tasks.split import Split
from tombola.tasks.task import HOLDOUT, Task, register_task, task_names
from tombola.tasks.without_labels import unlabelled

if TYPE_CHECKING:
    from tombola.tasks.blocks import Blocks, MaskTokens
    from tombola.tasks.encoding import Collate, Encoded, fitting_length, position_limit, set_padding
    from tombola.tasks.tagged import Tagged
    from tombola.tasks.text_windows import TextWindows
    from tombola.tasks.windows import Windows

_HOME = {
    "Blocks": "blocks",
    "Collate": "encoding",
    "Encoded": "encoding",
    "MaskTokens": "blocks",
    "Tagged": "tagged",
    "TextWindows": "text_windows",
    "Windows": "windows",
    "fitting_length": "encoding",
    "position_limit": "encoding",
    "set_padding": "encoding",
}

__all__ = [
    "HOLDOUT",
    "Answers",
    "Blocks",
    "Collate",
    "Encoded",
    "MaskTokens",
    "Split",
    "Tagged",
    "Task",
    "TextWindows",
    "Windows",
    "collate_of",
    "encode",
    "fitting_length",
    "kind_of",
    "position_limit",
    "register_task",
    "set_padding",
    "task_kinds",
    "task_names",
    "unlabelled",
]

__getattr__ = lazily(__name__, _HOME)
