"""Run a single stage in the current process."""

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
from tombola.pipeline.engines.ranks import forget_other_ranks, make_on_all_ranks, ranks
from tombola.store.stage import WORK, Progress, Stage, Workspace
from tombola.store.store import Store


def work(stage: Stage[Any], store: Store, progress: Progress) -> bool:
    """Run a stage unless it is finished, under `accelerate launch` on all ranks; return whether it ran."""

    def run(folder: Path) -> None:
        with models_on(device_of(stage)):
            stage.run(Workspace(folder, store, progress))

    def run_alone(folder: Path) -> None:
        if stage.distributed:
            forget_other_ranks(folder / WORK)
        run(folder)

    return make_on_all_ranks(stage, store, run) if ranks() > 1 else store.make(stage, run_alone)


def device_of(stage: Stage[Any]) -> str:
    """Return the device of a stage's models: the one in its settings or references, or `cpu`."""
    named = (getattr(getattr(stage, field.name), "device", None) for field in fields(stage))
    return next((device for device in named if isinstance(device, str)), "cpu")


def attempt(stage: Stage[Any], store: Store, progress: Progress, capture: bool) -> str | None:
    """Run a stage; if it fails, return the reason in a sentence, and write the traceback to the stage's log.

    With `capture`, for worker processes, the stage's output goes there too.
    """
    try:
        with _captured(store.log(stage)) if capture else nullcontext():
            work(stage, store, progress)
    except Exception as error:
        return log_failure(stage, store, error)
    return None


def log_failure(stage: Stage[Any], store: Store, error: Exception) -> str:
    """Write the traceback of a failed stage to its log; return the reason in a sentence."""
    log = store.log(stage)
    with suppress(OSError):  # on a full disk, the reason alone must suffice
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{stage.name} ({stage.label})\n{''.join(traceback.format_exception(error))}\n")
    if isinstance(error, TombolaError):
        return str(error)
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


@contextmanager
def _captured(log: Path) -> Iterator[None]:
    """Redirect the output of this process, C libraries included, to a file."""
    streams = (sys.stdout, sys.stderr)
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab", buffering=0) as file:
        saved = [os.dup(descriptor) for descriptor in (1, 2)]
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
