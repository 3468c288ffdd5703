"""One stage, run to its end by whichever process has taken it."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from tombola.errors import TombolaError
from tombola.models.placing import models_on
from tombola.pipeline.engines.ranks import make_on_all_ranks, ranks
from tombola.store.stage import Progress, Stage, Workspace
from tombola.store.store import Store


def work(stage: Stage[Any], store: Store, progress: Progress) -> bool:
    """Run a stage unless it is finished; true if it ran now. Under `accelerate launch`, on all ranks together."""

    def run(folder: Path) -> None:
        with models_on(device_of(stage)):
            stage.run(Workspace(folder, store, progress))

    return make_on_all_ranks(stage, store, run) if ranks() > 1 else store.make(stage, run)


def device_of(stage: Stage[Any]) -> str:
    """Where a stage's models are put: on the device that one of its settings or references names, else `cpu`."""
    named = (getattr(getattr(stage, field.name), "device", None) for field in fields(stage))
    return next((device for device in named if isinstance(device, str)), "cpu")


def attempt(stage: Stage[Any], store: Store, progress: Progress, capture: bool) -> str | None:
    """Run a stage; if it fails, return why in a sentence. The traceback goes to the stage's log.

    With `capture`, for a process of its own, all that the stage prints goes there too.
    """
    log = store.log(stage)
    log.parent.mkdir(parents=True, exist_ok=True)
    with _captured(log) if capture else nullcontext():
        try:
            work(stage, store, progress)
        except Exception as error:
            return log_failure(stage, store, error)
    return None


def log_failure(stage: Stage[Any], store: Store, error: Exception) -> str:
    """Write the traceback of a failed stage to its log; return why it failed in a sentence."""
    log = store.log(stage)
    with suppress(OSError):  # on a full disk the reason alone must do
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{stage.name} ({stage.label})\n{''.join(traceback.format_exception(error))}\n")
    if isinstance(error, TombolaError):
        return str(error)
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


@contextmanager
def _captured(log: Path) -> Iterator[None]:
    """Send all that this process prints, libraries in C included, to a file."""
    streams = (sys.stdout, sys.stderr)
    saved = [os.dup(descriptor) for descriptor in (1, 2)]
    with open(log, "ab", buffering=0) as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
        try:
            yield
        finally:
            for stream in streams:
                stream.flush()
            for descriptor, before in zip((1, 2), saved, strict=True):
                os.dup2(before, descriptor)
                os.close(before)
    if not os.path.getsize(log):
        log.unlink(missing_ok=True)
