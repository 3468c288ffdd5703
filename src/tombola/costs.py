"""What a study will cost before it runs: stages, training steps, and the time they will take."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any

from tombola.engines.work import work
from tombola.stages.sources import load_split
from tombola.store import MANIFEST, Stage, Store
from tombola.training import TrainSettings
from tombola.training.run import total_steps

MEASURED = 8
"""The steps of the training that measures a step."""
PACE = ("batch_size", "accumulate", "max_length", "group_by_length", "adversary", "r_drop")
"""The settings of a training that decide how long a step takes."""


@dataclass(frozen=True)
class Cost:
    """The stages of one kind: how many, how many of them are finished, and what the rest takes."""

    kind: str
    asked: int
    """What the cells ask for, each for itself, as a script per cell would run it."""
    stages: int
    finished: int
    asked_steps: int
    steps: int
    """Of training, in the stages that are left to run."""
    seconds: float | None
    """Of the stages that are left to run; unknown where the store has seen none of their like."""


def steps(stage: Stage) -> int:
    """The optimizer steps of a stage; none where it does not train."""
    if "train" not in stage.settings or "data" not in stage.refs:
        return 0
    settings = TrainSettings(**stage.settings["train"])
    batches = ceil(len(load_split(stage.refs["data"].where)) / settings.batch_size)
    whole = total_steps(settings, batches)
    stop = stage.settings.get("stop_at")
    return whole if stop is None else min(whole, stop if stop >= 1 else ceil(stop * whole))


def estimate(asked: Sequence[Sequence[Stage]], stages: Sequence[Stage], store: Store) -> list[Cost]:
    """The cost of a study by kind of stage. `asked` has the stages of each cell, `stages` all of them once.

    Where the store has no training of the same model, data and pace, a few steps of one are taken and kept.
    """
    finished = store.finished(stages)
    count = {stage.key: steps(stage) for stage in stages}
    times = _Times(store, {stage.kind for stage in stages} | {"train"})
    costs = []
    for kind in dict.fromkeys(stage.kind for stage in stages):
        own = [stage for stage in stages if stage.kind == kind]
        wanted = [stage.key for cell in asked for stage in cell if stage.kind == kind]
        rest = [stage for stage in own if stage.key not in finished]
        seconds = [times.of(stage, count[stage.key]) for stage in rest]
        costs.append(
            Cost(
                kind,
                len(wanted),
                len(own),
                len(own) - len(rest),
                sum(count[key] for key in wanted),
                sum(count[stage.key] for stage in rest),
                None if None in seconds else sum(one for one in seconds if one is not None),
            )
        )
    return costs


class _Times:
    """How long things took in this store."""

    def __init__(self, store: Store, kinds: Iterable[str]) -> None:
        self.store = store
        self.step: dict[str, list[float]] = {}
        self.stage: dict[str, list[float]] = {}
        for manifest, log in _finished(store, kinds):
            identity = manifest["stage"]
            if log is not None and log["steps"]:
                self.step.setdefault(_pace(identity), []).append(log["seconds"] / log["steps"])
            self.stage.setdefault(_like(identity), []).append(manifest["made"]["seconds"])

    def of(self, stage: Stage, count: int) -> float | None:
        """Seconds that a stage will take."""
        if count:
            return count * self._step(stage)
        known = self.stage.get(_like(stage.identity()))
        return median(known) if known else None

    def _step(self, stage: Stage) -> float:
        pace = _pace(stage.identity())
        if pace not in self.step:
            self.step[pace] = [_measure(stage, self.store)]
        return median(self.step[pace])


def _measure(stage: Stage, store: Store) -> float:
    """Take a few steps of the stage's training, from the pre-trained model and without what it stands on."""
    training = {name: value for name, value in stage.settings["train"].items() if name in PACE}
    settings = {name: stage.settings[name] for name in ("seed", "precision") if name in stage.settings}
    short = Stage(
        "train",
        1,
        {"train": training, **settings, "stop_at": MEASURED},
        refs=stage.refs,
        unhashed=stage.unhashed,
        label=f"measure {MEASURED} steps",
    )
    work(short, store, lambda step, total: None)
    log = json.loads((store.open(short) / "log.json").read_text())
    return log["seconds"] / log["steps"]


def _finished(store: Store, kinds: Iterable[str]) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    for kind in sorted(kinds):
        for file in (store.root / kind).glob(f"*/{MANIFEST}"):
            log = file.with_name("log.json")
            yield json.loads(file.read_text()), json.loads(log.read_text()) if log.is_file() else None


def _pace(identity: dict[str, Any]) -> str:
    training = {name: value for name, value in identity["settings"]["train"].items() if name in PACE}
    return json.dumps([training, identity["settings"].get("precision"), identity["refs"]], sort_keys=True)


def _like(identity: dict[str, Any]) -> str:
    """What stages of about the same time have in common."""
    settings = {
        name: value for name, value in identity["settings"].items() if name in ("attack", "n", "search")
    }
    return json.dumps([identity["kind"], settings, identity["refs"]], sort_keys=True)
