"""Exceptions for users' mistakes: one clear sentence, never a traceback."""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST, MOST_LINES = 2_000, 20
"""Limits of a message: characters per line, and lines."""


class TombolaError(Exception):
    """Base class of all errors that users can fix; the command prints the message and exits with code 2.

    Args:
        message: What is wrong and what to do. It may quote any file: long lines are cut, and control characters are
            escaped.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(_bounded(message))


class UnknownName(TombolaError):
    """A name that does not exist; the message suggests the closest valid names."""

    def __init__(self, kind: str, name: object, valid: Iterable[str], where: str = "") -> None:
        valid = sorted(set(valid))
        near = get_close_matches(str(name)[:LONGEST], valid, n=3, cutoff=0.6)
        offer = f"Did you mean {_either(near)}?" if near else f"Valid: {', '.join(valid)}."
        place = f"{where}: " if where else ""
        super().__init__(f"{place}unknown {kind} {str(name)!r}. {offer}")


class RecipeError(TombolaError):
    """An invalid recipe; each mistake names the field's path and the values it takes.

    Args:
        *mistakes: One sentence per mistake. Several are shown as a list.
    """

    shown = 17

    def __init__(self, *mistakes: str) -> None:
        self.mistakes = tuple(dict.fromkeys(mistakes))
        super().__init__(self._message())

    def _message(self) -> str:
        if len(self.mistakes) == 1:
            return self.mistakes[0]
        rest = len(self.mistakes) - self.shown
        lines = [f"{len(self.mistakes)} mistakes:", *self.mistakes[: self.shown]]
        return "\n  ".join([*lines, f"and {rest} more"] if rest > 0 else lines)


class PluginError(TombolaError):
    """A plugin that cannot be loaded, that registers a name twice, or whose function returns what it must not."""


class DataError(TombolaError):
    """Data that is missing or malformed; the message names the file, the line and the reason."""


class ModelError(TombolaError):
    """A model that cannot be found, or whose architecture Tombola does not support."""


class MaskMismatch(TombolaError):
    """A mask that was drawn from another model; the message shows both fingerprints."""


class DamagedArtefact(TombolaError):
    """A stored folder whose content does not match its manifest."""


class TrainingDiverged(TombolaError):
    """The loss became NaN or infinite; the message names the step and the last good checkpoint."""


def _either(names: list[str]) -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _bounded(message: str) -> str:
    lines = [_cut(line) for line in message.split("\n")]
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], f"… and {len(lines) - MOST_LINES + 1} more lines"]
    return "\n".join(lines)


def _cut(line: str) -> str:
    if len(line) > LONGEST:
        line = f"{line[: LONGEST * 3 // 4]} … {line[-LONGEST // 4 :]}"
    return "".join(one if one.isprintable() or one == "\t" else repr(one)[1:-1] for one in line)
