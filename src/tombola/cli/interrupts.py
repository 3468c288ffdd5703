"""Handle Ctrl-C, and record it, since a library may turn it into another error.

An interrupt during an import may surface as an error of the imported library.
"""

import signal
from types import FrameType

GOES_ON = "interrupted; the same command resumes where it stopped"
ANEW = "interrupted; the same command starts over"

_came: list[int] = []


def listen() -> None:
    """Record interrupts, which still end the command, unless the process ignores or handles them already."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _note)


def interrupted(error: BaseException) -> bool:
    """Return whether an interrupt ended the command.

    Args:
        error: The exception that ended it.
    """
    return isinstance(error, KeyboardInterrupt) or (bool(_came) and isinstance(error, Exception))


def _note(number: int, frame: FrameType | None) -> None:
    _came.append(number)
    signal.default_int_handler(number, frame)
