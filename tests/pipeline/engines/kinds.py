"""Kinds of stage for tests of engines: registered where this module is imported, in workers too."""

import os
import signal
import time
from typing import Any

from tombola.errors import TombolaError
from tombola.pipeline.stages import Job, kinds, stage
from tombola.store.store import Stage

if "test_write" not in kinds:

    @stage("test_write", version=1)
    def write(job: Job) -> None:
        read = [(folder / "text").read_text() for _, folder in sorted(job.inputs.items())]
        print(f"writing {job.settings['text']}")
        time.sleep(job.settings.get("sleep", 0))
        (job.folder / "text").write_text("".join([*read, job.settings["text"]]))

    @stage("test_fail", version=1)
    def fail(job: Job) -> None:
        raise (
            TombolaError(job.settings["text"])
            if job.settings.get("user")
            else ValueError(job.settings["text"])
        )

    @stage("test_die", version=1)
    def die(job: Job) -> None:
        """Kill the own process, so many times; then write."""
        work = job.folder / "work"
        work.mkdir(exist_ok=True)
        died = len(list(work.iterdir()))
        if died < job.settings["times"]:
            (work / str(died)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        (job.folder / "text").write_text(f"died {died} times")


def one(kind: str, text: str = "", *inputs: Stage, **settings: Any) -> Stage:
    return Stage(
        kind,
        1,
        {"text": text, **settings},
        {str(index): stage for index, stage in enumerate(inputs)},
        label=text,
    )
