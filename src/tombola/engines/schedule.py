"""Which stages can run: those whose inputs are finished. What stands on a failed one never does."""

import heapq
from collections.abc import Iterable

from tombola.engines.outcome import Failure, Outcome, Watcher
from tombola.store import Stage, Store


class Schedule:
    """The stages of a study in the order in which workers may take them, the longest road first.

    Long roads first, because the rounds of iterative pruning can only run one after the other: begun late, they
    would keep one worker busy at the end while the others have nothing left to do.
    """

    def __init__(self, stages: Iterable[Stage], store: Store, watcher: Watcher) -> None:
        stages = list(stages)
        self.store, self.watcher, self.outcome = store, watcher, Outcome()
        finished = store.finished(stages)
        self.outcome.found = [stage for stage in stages if stage.key in finished]
        self._rest = {stage.key: stage for stage in stages if stage.key not in finished}
        self._missing = {
            key: {before.key for before in stage.inputs.values()} & self._rest.keys()
            for key, stage in self._rest.items()
        }
        self._after: dict[str, list[str]] = {}
        for key, before in self._missing.items():
            for one in before:
                self._after.setdefault(one, []).append(key)
        self._height = self._heights(stages)
        self._ready: list[tuple[int, int, str]] = []
        self._order = {key: index for index, key in enumerate(self._rest)}
        for key, before in self._missing.items():
            if not before:
                self._offer(key)
        watcher.planned(len(stages), len(finished))

    def _heights(self, stages: list[Stage]) -> dict[str, int]:
        """For every stage, how many can only come one after the other behind it."""
        height: dict[str, int] = {}
        for stage in reversed(stages):
            for before in stage.inputs.values():
                height[before.key] = max(height.get(before.key, 0), height.get(stage.key, 0) + 1)
        return height

    def _offer(self, key: str) -> None:
        heapq.heappush(self._ready, (-self._height.get(key, 0), self._order[key], key))

    def take(self) -> Stage | None:
        """The next stage to run, or nothing while all that are left wait for others."""
        if not self._ready:
            return None
        stage = self._rest[heapq.heappop(self._ready)[-1]]
        self.watcher.begun(stage)
        return stage

    def end(self, stage: Stage, reason: str | None) -> None:
        """A stage is finished, or has failed for a reason: what waits for it is ready, or blocked."""
        failure = Failure(stage, reason, self.store.log(stage)) if reason is not None else None
        del self._rest[stage.key]
        if failure is None:
            self.outcome.ran.append(stage)
            for key in self._after.get(stage.key, ()):
                self._missing[key].discard(stage.key)
                if not self._missing[key] and key in self._rest:
                    self._offer(key)
        else:
            self.outcome.failures.append(failure)
            self._block(stage.key)
        self.watcher.ended(stage, failure)

    def _block(self, key: str) -> None:
        for after in self._after.get(key, ()):
            if after in self._rest:
                self.outcome.blocked.append(self._rest.pop(after))
                self._block(after)

    @property
    def over(self) -> bool:
        """Whether nothing is left, neither waiting nor running."""
        return not self._rest
