"""The command line. Each command is a thin layer over one function of `tombola.api`."""

import os
import sys
from importlib import import_module

from tombola.cli.console import sentence_of, stop
from tombola.cli.interrupts import ANEW, interrupted, listen
from tombola.cli.options import app
from tombola.errors import TombolaError

__all__ = ["app", "main"]

VERBS = (
    *("quickstart", "compress", "run", "study", "share", "transfer"),
    *("evaluate", "predict", "attack", "inspect", "prune", "shrink", "export", "report", "compare", "import"),
    *("list", "task", "validate", "store", "doctor"),
)
"""In the order of the help; importing a command's module registers it."""

for _verb in VERBS:
    import_module(f"tombola.cli.{'import_' if _verb == 'import' else _verb}")


def main() -> None:
    """Run the command; a user's mistake prints one sentence and exits with code 2, an interrupt with code 130."""
    listen()
    try:
        _run()
    except BaseException as error:
        if not interrupted(error):
            raise
        stop(ANEW, 130)


def _run() -> None:
    try:
        app(prog_name="tombola")
    except BrokenPipeError:
        # The reader is gone; the final flush must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (TombolaError, OSError) as error:
        if (sentence := sentence_of(error)) is None:
            raise
        stop(sentence, 2)
