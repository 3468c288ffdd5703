"""Estimate the cost of a plan: stages, training steps and time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tombola.attacks.in_the_loop import AttackAdversary
from tombola.errors import DamagedArtefact
from tombola.pipeline.engines.work import work
from tombola.pipeline.plan import Plan
from tombola.pipeline.references import DataSource
from tombola.pipeline.stages.base import LOG
from tombola.pipeline.stages.search import SearchStage
from tombola.pipeline.stages.share import Share
from tombola.pipeline.stages.train import Train
from tombola.store.manifest import MANIFEST, read_manifest
from tombola.store.stage import Stage
from tombola.store.store import Store
from tombola.training.settings import TrainSettings

TRIAL_STEPS = 8
"""Steps of the short training that measures the time of a step."""
TRIED = ("batch_size", "accumulate", "max_length", "group_by_length", "adversary", "r_drop", "augment")
"""The training settings that a short trial uses too."""
PACE = (*TRIED, "distill")
"""The training settings that determine how long a step takes."""
FORWARD_SHARE = 1 / 3
"""The time of a forward pass, such as a teacher's, as a share of a plain step."""

Training = Train | SearchStage | Share


@dataclass(frozen=True)
class StageCosts:
    """The stages of one kind: their number, how many are finished, and the cost of the rest.

    Attributes:
        kind: The kind of stage.
        asked: Stages summed over cells, as a script per cell would run them.
        stages: Stages with those that cells share counted once.
        finished: Stages that are in the store already.
        asked_steps: Training steps summed over cells.
        steps: Training steps of the stages left to run.
        seconds: Time of the stages left to run; None if it cannot be estimated.
        without_attacks: Whether `seconds` leaves out attacks during training: their time depends on how well the
            model resists, and the store has no similar training.
    """

    kind: str
    asked: int
    stages: int
    finished: int
    asked_steps: int
    steps: int
    seconds: float | None
    without_attacks: bool = False


def estimate(plan: Plan, store: Store, *, afresh: bool = False) -> list[StageCosts]:
    """Estimate the cost of a plan by kind of stage.

    Times are those of similar stages in the store. If it has no training of the same model, data and pace, a few steps
    are run and stored; what other stages take is estimated from the texts that they read at that pace.

    Args:
        plan: The plan.
        store: The store of finished stages.
        afresh: Count as if nothing were finished.
    """
    stages = plan.stages
    finished = set() if afresh else store.finished(stages)
    steps = {stage.key: stage.training_steps() for stage in stages}
    times = _Times(store, {stage.kind for stage in stages} | {Train.kind})
    requested = [stage for cell in plan.cells for stage in cell.stages()]
    costs = []
    for kind in dict.fromkeys(stage.kind for stage in stages):
        of_kind = [stage for stage in stages if stage.kind == kind]
        keys = [stage.key for stage in requested if stage.kind == kind]
        unfinished = [stage for stage in of_kind if stage.key not in finished]
        seconds = [times.of(stage, steps[stage.key]) for stage in unfinished]
        costs.append(
            StageCosts(
                kind,
                asked=len(keys),
                stages=len(of_kind),
                finished=len(of_kind) - len(unfinished),
                asked_steps=sum(steps[key] for key in keys),
                steps=sum(steps[stage.key] for stage in unfinished),
                seconds=None if None in seconds else sum(time for time in seconds if time is not None),
                without_attacks=any(stage.key in times.without_attacks for stage in unfinished),
            )
        )
    return costs


class _Times:
    """The duration of stages and steps in this store."""

    def __init__(self, store: Store, kinds: set[str]) -> None:
        self.store = store
        self.step: dict[str, list[float]] = {}
        self.stage: dict[str, list[float]] = {}
        self.without_attacks: set[str] = set()
        """Keys of trainings whose attacks in the loop were not measured."""
        for manifest, log in _finished(store, kinds):
            identity = manifest["stage"]
            if log is not None and log["steps"] and "data" in identity["refs"]:
                settings = identity["settings"]
                training = settings["train"] if "train" in settings else settings["search"].get("train", {})
                pace = _pace(training, settings.get("precision"), identity["refs"])
                self.step.setdefault(pace, []).append(log["seconds"] / log["steps"])
            self.stage.setdefault(_like(identity), []).append(manifest["made"]["seconds"])

    def of(self, stage: Stage[Any], steps: int) -> float | None:
        """Return the seconds that a stage will take; a training without steps counts as 0."""
        if isinstance(stage, Train) and not steps:
            return 0.0
        if steps and isinstance(stage, Training):
            return steps * self._step(stage)
        times = self.stage.get(_like(stage.identity()))
        return median(times) if times else self._reading(stage)

    def _reading(self, stage: Stage[Any]) -> float | None:
        """Return the seconds that a stage takes to read its texts, at the pace of the first training behind it."""
        texts = stage.texts_read()
        if not texts:
            return stage.overhead if texts == 0 else None
        trainings = (one for one in stage.with_inputs() if isinstance(one, Training))
        training = next((one for one in trainings if one.training_steps()), None)
        if training is None:
            return None
        settings = training.train
        read_per_step = settings.batch_size * settings.accumulate * _passes(settings)
        return stage.overhead + texts * FORWARD_SHARE * self._trial_step(training) / read_per_step

    def _step(self, stage: Training) -> float:
        times = self.step.get(_pace(stage.train.canonical(), stage.precision, _read_by(stage)))
        if times:
            return median(times)
        if isinstance(stage.train.adversary, AttackAdversary):
            self.without_attacks.add(stage.key)
        return self._trial_step(stage) * (1 + _teacher_share(stage.train))

    def _trial_step(self, stage: Training) -> float:
        """Return the seconds of a step of the stage's trial, which is run if the store has none of that pace."""
        trial = _trial(stage)
        pace = _pace(trial.train.canonical(), trial.precision, _read_by(trial))
        if pace not in self.step:
            work(trial, self.store, lambda step, total, figures: None)
            log = self.store.read(trial).log
            self.step[pace] = [log.seconds / log.steps]
        return median(self.step[pace])


def _teacher_share(settings: TrainSettings) -> float:
    """Return the extra time of a step for the teacher, which reads a batch once however often the student does."""
    if settings.distill is None:
        return 0.0
    return FORWARD_SHARE / _passes(settings)


def _passes(settings: TrainSettings) -> int:
    """Return how often a step reads its batch."""
    passes = settings.adversary.passes if settings.adversary is not None else 1
    return passes * (1 if settings.r_drop is None else 2)


def _trial(stage: Training) -> Train:
    """Return a few steps of the stage's training, from the pre-trained model and without its input stages."""
    tried = {name: getattr(stage.train, name) for name in TRIED}
    if isinstance(stage.train.adversary, AttackAdversary):
        tried["adversary"] = None
    paced = TrainSettings(**tried, steps=TRIAL_STEPS)
    return Train(
        model=stage.model,
        data=_data(stage),
        train=paced,
        seed=stage.seed,
        precision=stage.precision,
    )


def _data(stage: Training) -> DataSource:
    return stage.data[0] if isinstance(stage, Share) else stage.data


def _read_by(stage: Training) -> dict[str, str]:
    return {"model": stage.model.fingerprint, "data": _data(stage).fingerprint}


def _finished(store: Store, kinds: set[str]) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Yield the manifest and the log of finished stages, except damaged ones, and those deleted meanwhile."""
    for kind in sorted(kinds):
        for file in (store.root / kind).glob(f"*/{MANIFEST}"):
            log = file.with_name(LOG)
            try:
                found = read_manifest(file.parent), json.loads(log.read_text()) if log.is_file() else None
            except (DamagedArtefact, OSError, ValueError):
                continue
            yield found


def _pace(training: dict[str, Any], precision: str | None, references: dict[str, str]) -> str:
    paced = {name: value for name, value in training.items() if name in PACE}
    read = {name: references[name] for name in ("model", "data")}
    return json.dumps([paced, precision, read], sort_keys=True)


def _like(identity: dict[str, Any]) -> str:
    """Return a key that stages of about the same duration share."""
    settings = {
        name: value for name, value in identity["settings"].items() if name in ("attack", "n", "search")
    }
    return json.dumps([identity["kind"], settings, identity["refs"]], sort_keys=True)


def total_seconds(costs: Sequence[StageCosts]) -> float:
    """Return the sum of all known times."""
    return sum(cost.seconds or 0 for cost in costs)
