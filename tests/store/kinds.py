"""Kinds of stage for tests of the store and the engines."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tombola.errors import TombolaError
from tombola.store.stage import Stage, Workspace


@dataclass(frozen=True, eq=False, kw_only=True)
class TextStage(Stage[str]):
    """A stage that leaves a text."""

    text: str = ""
    before: tuple[Stage[Any], ...] = ()

    @property
    def label(self) -> str:
        return self.text

    def write(self, space: Workspace, text: str) -> None:
        (space.folder / "text").write_text(text)

    def read(self, folder: Path) -> str:
        return (folder / "text").read_text()


@dataclass(frozen=True, eq=False, kw_only=True)
class Write(TextStage):
    kind: ClassVar = "test_write"
    version: ClassVar = 1
    sleep: float = 0.0

    def run(self, space: Workspace) -> None:
        print(f"writing {self.text}")
        time.sleep(self.sleep)
        self.write(space, "".join([*map(space.read, self.before), self.text]))


@dataclass(frozen=True, eq=False, kw_only=True)
class Fail(TextStage):
    kind: ClassVar = "test_fail"
    version: ClassVar = 1
    user: bool = False

    def run(self, space: Workspace) -> None:
        raise TombolaError(self.text) if self.user else ValueError(self.text)


@dataclass(frozen=True, eq=False, kw_only=True)
class Die(TextStage):
    """Kills its own process, so many times; then writes."""

    kind: ClassVar = "test_die"
    version: ClassVar = 1
    times: int = 1

    def run(self, space: Workspace) -> None:
        died = len(list(space.scratch.iterdir()))
        if died < self.times:
            (space.scratch / str(died)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        self.write(space, f"died {died} times")


KINDS = {kind.kind: kind for kind in (Write, Fail, Die)}


def one(kind: str, text: str = "", *inputs: Stage[Any], **settings: Any) -> Any:
    return KINDS[kind](text=text, before=inputs, **settings)
