"""Experiment trackers, by their names in transformers."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers.integrations import get_available_reporting_integrations
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

from tombola.errors import TombolaError, UnknownName

if TYPE_CHECKING:
    from transformers import Trainer


def check_trackers(names: Sequence[str]) -> None:
    """Raise an error if a tracker is not installed.

    Args:
        names: The trackers to report to, as in `report_to`.
    """
    trackers = get_available_reporting_integrations()
    missing = [name for name in names if name not in trackers]
    if not missing:
        return
    if missing[0] not in INTEGRATION_TO_CALLBACK:
        near = str(UnknownName("tracker", missing[0], INTEGRATION_TO_CALLBACK))
        raise TombolaError(f"report_to: {missing[0]!r} is not installed: {near}")
    installed = ", ".join(trackers) or "none"
    raise TombolaError(
        f"report_to: {missing[0]!r} is not installed: pip install {missing[0]}, or leave it out; installed trackers: "
        f"{installed}"
    )


def run_name(folder: Path) -> str:
    """Return the name of a training in trackers: the name of its stage, as `tombola store ls` shows it.

    Args:
        folder: The stage's working folder: KIND/KEY.partial/work.
    """
    return f"{folder.parent.parent.name}/{folder.parent.name.partition('.')[0][:12]}"


@contextmanager
def reporting(trainer: "Trainer", names: Sequence[str]) -> Iterator[None]:
    """Report to trackers in this context; a tracker that cannot start, for lack of a login, for example, says why.

    The next training of the process becomes a separate run; only wandb needs to be told.

    Args:
        trainer: The Trainer with the trackers' callbacks.
        names: The trackers, as in `report_to`.
    """
    wandb = importlib.import_module("wandb") if "wandb" in names else None
    ours = wandb is not None and wandb.run is None
    kinds = {INTEGRATION_TO_CALLBACK[name]: name for name in names}
    for callback in trainer.callback_handler.callbacks:
        if name := kinds.get(type(callback)):
            callback.on_train_begin = _guarded(name, callback.on_train_begin)
    try:
        yield
    finally:
        if wandb is not None and ours and wandb.run is not None:
            wandb.finish()


def _guarded(name: str, begin: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(begin)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return begin(*args, **kwargs)
        except Exception as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
            raise TombolaError(
                f"report_to: {name} could not start: {reason}. Set it up as described in its documentation, or leave "
                "it out"
            ) from error

    return guarded
