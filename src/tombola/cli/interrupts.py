"""Ctrl-C: the message, and a note that it was pressed, even where a library turns it into another error.

An interrupt in the middle of an import may reach Python as an error of the library that is being imported.
"""

import signal
from types import FrameType

GOES_ON = "interrupted; the same command goes on where it stopped"
ANEW = "interrupted; the same command begins anew"

_came: list[int] = []


def listen() -> None:
    """Note interrupts, which end the command as before; a command that ignores them goes on ignoring them."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _note)


def interrupted(error: BaseException) -> bool:
    """Whether the command ends by an interrupt.

    Args:
        error: How it ends.
    """
    return isinstance(error, KeyboardInterrupt) or (bool(_came) and isinstance(error, Exception))


def _note(number: int, frame: FrameType | None) -> None:
    _came.append(number)
    signal.default_int_handler(number, frame)
