"""What each kind of stage does: a function of a `Job`, which writes its result into the job's folder."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tombola.registry import Registry
from tombola.store import Ref, Stage

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Job:
    """One stage at work: what it was told, where its inputs lie, and where its result goes."""

    stage: Stage
    folder: Path
    inputs: Mapping[str, Path]
    progress: Progress

    @property
    def settings(self) -> Mapping[str, Any]:
        """The stage's own part of the recipe."""
        return self.stage.settings

    def ref(self, name: str) -> Ref:
        """Something outside the store that this stage reads."""
        return self.stage.refs[name]

    def write_json(self, name: str, content: Any) -> None:
        """Keep a part of the result as JSON."""
        (self.folder / name).write_text(json.dumps(content, indent=1, allow_nan=False))


@dataclass(frozen=True)
class Kind:
    """A kind of stage. Raise `version` when its results change for equal settings."""

    name: str
    version: int
    run: Callable[[Job], None]


kinds: Registry[Kind] = Registry("stage")


def stage(name: str, version: int) -> Callable[[Callable[[Job], None]], Callable[[Job], None]]:
    """Register the function that carries out stages of this kind."""

    def register(run: Callable[[Job], None]) -> Callable[[Job], None]:
        kinds(name)(Kind(name, version, run))
        return run

    return register


from tombola.stages import (  # noqa: E402  (the registry's lines)
    attack,  # noqa: F401
    bias,  # noqa: F401
    draw,  # noqa: F401
    evaluate,  # noqa: F401
    given,  # noqa: F401
    measure,  # noqa: F401
    perturb,  # noqa: F401
    score,  # noqa: F401
    search,  # noqa: F401
    share,  # noqa: F401
    teacher,  # noqa: F401
    train,  # noqa: F401
)
