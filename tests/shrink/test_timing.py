"""Speed-ups of stand-in models of known cost, on a machine whose clock and disturbances the test decides."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, cycle, repeat
from pathlib import Path

import pytest
import torch

from tombola.shrink import timing
from tombola.shrink.measuring import time_models
from tombola.shrink.sizes import Speedup
from tombola.shrink.timing import Lap, Stopwatch, queued_seconds, time_in_turns

QUIET = repeat(0.0)


class Machine(Stopwatch):
    """A machine with a clock of its own. `held_up` says how long each pass waits for a processor."""

    def __init__(self, held_up: Iterator[float] = QUIET) -> None:
        super().__init__()
        self.time = 0.0
        self.held_up = held_up
        self.timed: list[tuple[str, int]] = []

    def for_one_thread(self) -> "Machine":
        return self

    def now(self) -> float:
        return self.time

    def lap(self, run: Callable[[], object]) -> Lap:
        start = self.time
        run()
        worked = self.time - start
        waited = next(self.held_up)
        self.time += waited
        return Lap(worked + waited, worked / (worked + waited))

    def model(self, name: str, seconds: Callable[[int], float]) -> Callable[[int], None]:
        """A model that takes so long for a batch, which is a number here."""

        def run(batch: int) -> None:
            self.time += seconds(batch)
            self.timed.append((name, batch))

        return run

    def dense_and_ticket(self) -> list[Callable[[int], None]]:
        """A model whose time is its batch, and one four times as fast."""
        return [self.model("dense", lambda batch: batch), self.model("ticket", lambda batch: batch / 4)]


def test_the_ratio_of_models_of_known_cost_is_exact_whatever_the_batches() -> None:
    machine = Machine()
    found = time_in_turns(machine.dense_and_ticket(), [1, 5, 2], rounds=15, seconds=1e9, watch=machine)
    assert found.speedup(1) == Speedup(ratio=4, low=4, high=4)
    assert found.speedup(0) == Speedup(ratio=1, low=1, high=1)
    assert (found.latency(0), found.latency(1)) == pytest.approx((2, 0.5))


def test_models_take_turns_on_the_same_batch_and_the_first_turn_alternates() -> None:
    machine = Machine()
    time_in_turns(machine.dense_and_ticket(), [1, 5, 2], rounds=4, seconds=1e9, watch=machine)
    warm_up = [("dense", 1), ("ticket", 1), ("dense", 5), ("ticket", 5)]
    rounds = [
        *[("dense", 1), ("ticket", 1)],
        *[("ticket", 5), ("dense", 5)],
        *[("dense", 2), ("ticket", 2)],
        *[("ticket", 1), ("dense", 1)],
    ]
    assert machine.timed == warm_up + rounds


def test_a_machine_that_slows_down_for_good_does_not_change_the_ratio() -> None:
    machine = Machine()
    slow = iter(range(1, 1000))
    pace = {}

    def seconds(batch: int) -> float:
        return pace.setdefault(len(machine.timed) // 2, next(slow))

    models = [machine.model("dense", seconds), machine.model("ticket", lambda batch: seconds(batch) / 2)]
    found = time_in_turns(models, [1], rounds=15, seconds=1e9, watch=machine)
    assert found.speedup(1) == Speedup(ratio=2, low=2, high=2)
    assert found.latency(0) > 5


def test_disturbed_rounds_are_run_again_and_do_not_count() -> None:
    machine = Machine(held_up=cycle([0.0, 0.0, 9.0, 0.0]))  # every second round, its first pass
    found = time_in_turns(machine.dense_and_ticket(), [1], rounds=15, seconds=1e9, watch=machine)
    assert found.speedup(1) == Speedup(ratio=4, low=4, high=4)
    assert len(found.laps) == 15
    assert len(machine.timed) == 2 * (timing.WARM_UP + 29)


def test_a_small_disturbance_is_none() -> None:
    machine = Machine(held_up=repeat(0.01))
    found = time_in_turns(machine.dense_and_ticket(), [1], rounds=15, seconds=1e9, watch=machine)
    assert len(found.laps) == 15 == len(machine.timed) / 2 - timing.WARM_UP
    assert found.speedup(1).busy is None


def test_a_machine_that_stays_busy_is_named_and_the_attempts_are_bounded() -> None:
    machine = Machine(held_up=cycle([1.0, 1.0, 1.0, 0.5]))
    found = time_in_turns(machine.dense_and_ticket(), [1], rounds=15, seconds=1e9, watch=machine)
    assert len(machine.timed) == 2 * (timing.WARM_UP + timing.ATTEMPTS * 15)
    assert len(found.laps) == 15
    speedup = found.speedup(1)
    # The dense model waits 1 s or 0.5 s beside its 1 s of work, the ticket always 1 s beside a quarter of a second.
    assert (speedup.low, speedup.ratio, speedup.high) == (1.2, 1.6, 1.6)
    assert speedup.busy == "machine busy: the models got 20% of the processor time they requested; ± 13%"


def test_the_least_disturbed_rounds_count_on_a_busy_machine() -> None:
    waits = chain.from_iterable(
        (wait, 0.0) if turn % 2 == 0 else (0.0, wait) for turn, wait in enumerate(range(1, 100))
    )
    machine = Machine(held_up=waits)
    found = time_in_turns(machine.dense_and_ticket(), [1], rounds=7, seconds=1e9, watch=machine)
    assert [laps[0].seconds for laps in found.laps] == [2, 3, 4, 5, 6, 7, 8]


def test_six_undisturbed_rounds_are_enough() -> None:
    machine = Machine(held_up=chain(repeat(0.0, 12), repeat(5.0)))
    found = time_in_turns(machine.dense_and_ticket(), [1], rounds=15, seconds=1e9, watch=machine)
    assert len(found.laps) == 6
    assert found.speedup(1) == Speedup(ratio=4, low=4, high=4)


def test_no_round_begins_after_the_time_is_up() -> None:
    machine = Machine()
    found = time_in_turns(machine.dense_and_ticket(), [32], rounds=15, seconds=300, watch=machine)
    assert len(found.laps) == 6  # a round takes 40 s, and so does each of two to warm up
    assert machine.time == 320
    assert found.speedup(1).busy is None


def test_a_model_too_slow_for_an_interval_says_so() -> None:
    machine = Machine()
    found = time_in_turns(machine.dense_and_ticket(), [32, 64], rounds=15, seconds=200, watch=machine)
    assert len(found.laps) == 2
    busy = "too slow for more than 2 rounds: the interval is their range"
    assert found.speedup(1) == Speedup(ratio=4, low=4, high=4, busy=busy)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


class Contended(Machine):
    """A machine on which models with several threads are held up, as if these spun for each other."""

    def lap(self, run: Callable[[], object]) -> Lap:
        self.held_up = repeat(1e3 if torch.get_num_threads() > 1 else 0.0)
        return super().lap(run)


@pytest.mark.usefixtures("two_threads")
def test_a_machine_too_busy_for_several_threads_is_measured_with_one() -> None:
    machine, opened = Contended(), []

    def models() -> list[Callable[[int], None]]:
        opened.append(torch.get_num_threads())
        return machine.dense_and_ticket()

    session = time_models(models, lambda size: [size], (1, 2), rounds=7, seconds=1e9, watch=machine)
    assert (opened, session.threads, torch.get_num_threads()) == ([2, 1], 1, 2)
    busy = "machine busy: measured with one thread; ± 0%"
    assert {size: found.speedup(1) for size, found in session.rounds.items()} == {
        size: Speedup(ratio=4, low=4, high=4, busy=busy) for size in (1, 2)
    }
    assert session.rounds[2].latency(0) == 2


@pytest.mark.usefixtures("two_threads")
def test_several_threads_are_kept_on_a_quiet_machine_and_for_a_model_alone() -> None:
    quiet, busy = Machine(), Contended()
    for machine, models in ((quiet, quiet.dense_and_ticket()), (busy, busy.dense_and_ticket()[:1])):
        session = time_models(
            lambda models=models: models, lambda size: [size], (1,), rounds=7, watch=machine
        )
        assert session.threads == 2
        assert not session.rounds[1].fallback


def test_one_thread_on_a_busy_machine_says_how_busy() -> None:
    machine = Machine(held_up=repeat(1.0))
    session = time_models(machine.dense_and_ticket, lambda size: [size], (1,), rounds=7, watch=machine)
    expected = "machine busy: the models got 20% of the processor time they requested; ± 0%"
    assert (session.threads, session.rounds[1].speedup(1).busy) == (1, expected)


def test_waiting_threads_are_counted_where_the_system_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "TASKS", tmp_path)
    for thread, content in (("1", "5000000000 250000000 12\n"), ("2", "1000000000 500000000 3\n")):
        (tmp_path / thread).mkdir()
        (tmp_path / thread / "schedstat").write_text(content)
    (tmp_path / "3").mkdir()  # a thread that ends between the listing and the reading
    assert queued_seconds() == 0.75
    for thread in ("1", "2"):  # a kernel that does not count writes zeros
        (tmp_path / thread / "schedstat").write_text("0 0 0\n")
    assert queued_seconds() is None
    monkeypatch.setattr(timing, "TASKS", tmp_path / "none")
    assert queued_seconds() is None


@pytest.mark.parametrize(("queued", "share"), [([1.0, 1.0], 1.0), ([1.0, 4.0], 0.25), ([1.0, 0.5], 1.0)])
def test_the_share_is_of_the_processor_time_asked_for(
    queued: list[float], share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = clocks(monkeypatch, queued, processor=[10.0, 11.0], wall=[0.0, 2.0])
    assert Stopwatch(clock).lap(lambda: None) == Lap(2.0, share)


@pytest.mark.parametrize(
    ("processor", "accelerated", "share"), [(1.0, False, 0.5), (3.9, False, 1.0), (0.1, True, 1.0)]
)
def test_processor_and_wall_time_decide_where_waiting_is_not_counted(
    processor: float, accelerated: bool, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = clocks(monkeypatch, [None, None], processor=[10.0, 10.0 + processor], wall=[0.0, 2.0])
    assert Stopwatch(clock, accelerated).lap(lambda: None).share == pytest.approx(share)


def test_waiting_is_no_part_of_the_time_of_one_thread() -> None:
    watch = Stopwatch().for_one_thread()
    assert watch.lap(lambda: time.sleep(0.2)).seconds < 0.1
    assert watch.for_one_thread() is watch
    accelerated = Stopwatch(accelerated=True)
    assert accelerated.for_one_thread() is accelerated


def clocks(
    monkeypatch: pytest.MonkeyPatch, queued: list[float | None], processor: list[float], wall: list[float]
) -> Callable[[], float]:
    """Clocks that show these values before and after a pass; the one on the wall."""
    shown = {"queued_seconds": queued, "process_time": processor, "perf_counter": wall}
    for name, values in shown.items():
        monkeypatch.setattr(timing, name, partial(next, iter(values)))
    return partial(next, iter(wall))


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux counts what threads wait")
def test_threads_that_share_a_processor_are_seen_to_wait() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    code = "print(flush=True)\nwhile True: pass"
    try:
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as rival:
            try:
                assert rival.stdout is not None
                rival.stdout.readline()
                lap = Stopwatch().lap(lambda: spin(0.4))
            finally:
                rival.kill()
    finally:
        os.sched_setaffinity(0, allowed)
    assert lap.share < 0.9


def spin(seconds: float) -> None:
    """Use a processor for so long."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
