"""Schedule stages: one is ready when its inputs are finished, and blocked if one of them fails."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from tombola.pipeline.watching import Failure, Outcome, Watcher
from tombola.store.stage import Stage
from tombola.store.store import Store


class Schedule:
    """The stages of a run in the order in which workers take them, the longest chain first.

    The rounds of iterative pruning must run one after the other. Started late, they would keep one worker busy at the
    end while the others are idle.
    """

    def __init__(self, stages: Sequence[Stage[Any]], store: Store, watcher: Watcher) -> None:
        self.store, self.watcher, self.outcome = store, watcher, Outcome()
        finished = store.finished(stages)
        self.outcome.found = [stage for stage in stages if stage.key in finished]
        self._rest = {stage.key: stage for stage in stages if stage.key not in finished}
        self._missing = {
            key: {needed.key for needed in stage.inputs.values()} & self._rest.keys()
            for key, stage in self._rest.items()
        }
        self._after: dict[str, list[str]] = {}
        for key, missing in self._missing.items():
            for needed in missing:
                self._after.setdefault(needed, []).append(key)
        self._height = _chain_lengths(stages)
        self._ready: list[tuple[int, int, str]] = []
        self._order = {key: index for index, key in enumerate(self._rest)}
        for key, missing in self._missing.items():
            if not missing:
                self._add_ready(key)
        watcher.planned(stages, finished)

    def _add_ready(self, key: str) -> None:
        heapq.heappush(self._ready, (-self._height.get(key, 0), self._order[key], key))

    def take(self) -> Stage[Any] | None:
        """Return the next stage to run, or None while all remaining ones wait for others."""
        if not self._ready:
            return None
        stage = self._rest[heapq.heappop(self._ready)[-1]]
        self.watcher.begun(stage)
        return stage

    def end(self, stage: Stage[Any], reason: str | None) -> Failure | None:
        """Record that a stage finished or failed, and make the stages that wait for it ready or blocked."""
        failure = Failure(stage, reason, self.store.log(stage)) if reason is not None else None
        del self._rest[stage.key]
        if failure is None:
            self.outcome.ran.append(stage)
            for key in self._after.get(stage.key, ()):
                self._missing[key].discard(stage.key)
                if not self._missing[key] and key in self._rest:
                    self._add_ready(key)
        else:
            self.outcome.failures.append(failure)
            self._block(stage.key)
        self.watcher.ended(stage, failure)
        return failure

    def _block(self, key: str) -> None:
        for after in self._after.get(key, ()):
            if after in self._rest:
                self.outcome.blocked.append(self._rest.pop(after))
                self._block(after)

    @property
    def over(self) -> bool:
        """Whether nothing is left, neither waiting nor running."""
        return not self._rest


def _chain_lengths(stages: Sequence[Stage[Any]]) -> dict[str, int]:
    """Return for every stage the length of the longest chain of stages that wait for it."""
    height: dict[str, int] = {}
    for stage in reversed(stages):
        for needed in stage.inputs.values():
            height[needed.key] = max(height.get(needed.key, 0), height.get(stage.key, 0) + 1)
    return height
