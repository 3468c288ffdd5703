"""What a user's mistake becomes: one clear sentence, never a traceback."""

from collections.abc import Iterable
from difflib import get_close_matches


class TombolaError(Exception):
    """Base of every error that the user can mend; the command prints it and exits with code 2."""


class UnknownName(TombolaError):
    """A name that is not in the list of valid ones; the message offers the nearest."""

    def __init__(self, kind: str, name: object, valid: Iterable[str], where: str = "") -> None:
        valid = sorted(valid)
        near = get_close_matches(str(name), valid, n=3, cutoff=0.6)
        offer = f"Did you mean {_either(near)}?" if near else f"Valid: {', '.join(valid)}."
        place = f"{where}: " if where else ""
        super().__init__(f"{place}unknown {kind} {str(name)!r}. {offer}")


class RecipeError(TombolaError):
    """A recipe that says something it may not; each mistake names the field's path and what it takes.

    Args:
        *mistakes: A sentence for each mistake. One stays a sentence, several become a list.
    """

    shown = 20

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
    """A plugin that cannot be loaded, or that registers a name twice."""


class DataError(TombolaError):
    """Data that is missing or malformed; the message names the file, the line and the reason."""


class ModelError(TombolaError):
    """A model that cannot be found or that Tombola does not know how to take apart."""


class MaskMismatch(TombolaError):
    """A mask that was drawn from another model; the message carries both fingerprints."""


class DamagedArtefact(TombolaError):
    """A stored folder whose content no longer agrees with its manifest."""


class TrainingDiverged(TombolaError):
    """The loss became NaN or infinite; the message names the step and the last good checkpoint."""


def _either(names: list[str]) -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
