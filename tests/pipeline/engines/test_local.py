"""Engines run every stage once and after its inputs; what fails blocks only what stands on it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.kinds import one
from tombola.errors import TombolaError
from tombola.pipeline.engines import Local, pool
from tombola.pipeline.engines.schedule import Schedule
from tombola.pipeline.engines.work import attempt
from tombola.pipeline.watching import Watcher
from tombola.store.stage import topological_order
from tombola.store.store import LOGS, Store


class Diary(Watcher):
    def __init__(self):
        self.begun_, self.ended_ = [], []

    def begun(self, stage):
        self.begun_.append(stage.label)

    def ended(self, stage, failure):
        self.ended_.append((stage.label, failure and failure.reason))


def diamond():
    top = one("test_write", "a")
    left, right = one("test_write", "b", top), one("test_write", "c", top)
    return one("test_write", "d", left, right)


def test_inputs_come_first_and_nothing_runs_twice(tmp_path):
    store, end, diary = Store(tmp_path), diamond(), Diary()
    outcome = Local().run(end.with_inputs(), store, diary)
    assert (store.open(end) / "text").read_text() == "abacd"
    assert diary.begun_[0] == "a"
    assert diary.begun_[-1] == "d"
    assert len(outcome.ran) == 4
    again = Local().run(end.with_inputs(), store, Watcher())
    assert (again.ran, len(again.found)) == ([], 4)


def test_what_fails_blocks_only_its_own_branch(tmp_path):
    store = Store(tmp_path)
    top = one("test_write", "a")
    bad, mistake = one("test_fail", "boom", top), one("test_fail", "set the seed", user=True)
    behind = one("test_write", "x", one("test_write", "y", bad))
    good = one("test_write", "b", top)
    outcome = Local().run(topological_order([behind, mistake, good]), store, Watcher())
    assert {stage.label for stage in outcome.ran} == {"a", "b"}
    assert {stage.label for stage in outcome.blocked} == {"x", "y"}
    reasons = {failure.stage.label: failure for failure in outcome.failures}
    assert reasons["boom"].reason == "ValueError: boom"
    assert "Traceback" in reasons["boom"].log.read_text()
    assert reasons["set the seed"].reason == "set the seed"
    assert outcome.unfinished == {stage.key for stage in (bad, mistake, behind, *behind.inputs.values())}


@pytest.mark.slow
@pytest.mark.parametrize("retries", [1, 0])
def test_a_worker_that_dies_is_replaced_unless_it_has_died_too_often(tmp_path, retries, caplog):
    store = Store(tmp_path)
    killer, other = one("test_die", "k", times=1), one("test_write", "o")
    behind = one("test_write", "!", killer)
    engine = Local(workers=2, threads=1, retries=retries)
    outcome = engine.run(topological_order([behind, other]), store, Watcher())
    assert store.has(other)
    assert "writing o" in store.log(other).read_text()
    if retries:
        assert (store.open(behind) / "text").read_text() == "died 1 times!"
        assert outcome.failures == []
        assert "k: its worker died (exit code -9), so another one resumes it" in caplog.messages
    else:
        assert outcome.blocked == [behind]
        (failure,) = outcome.failures
        assert failure.reason == "its worker died (exit code -9)"


@pytest.mark.slow
def test_a_worker_ends_in_silence_when_the_main_process_is_gone(tmp_path, capfd):
    ours, of_worker = pool._SPAWN.Pipe()
    worker = pool._SPAWN.Process(target=pool._serve, args=(of_worker, str(tmp_path), 1, None, ()))
    worker.start()
    of_worker.close()
    ours.send(one("test_write", "o", sleep=1.0))
    ours.close()
    worker.join()
    assert worker.exitcode == 0
    assert capfd.readouterr().err == ""
    assert Store(tmp_path).has(one("test_write", "o", sleep=1.0))


@pytest.mark.parametrize("capture", [True, False])
def test_a_log_that_cannot_be_written_is_a_reason_and_no_death_of_the_worker(tmp_path, capture):
    (tmp_path / LOGS).write_text("not a folder")
    reason = attempt(one("test_fail", "boom"), Store(tmp_path), lambda *_: None, capture=capture)
    assert reason == (
        "FileExistsError: [Errno 17] File exists: " + repr(str(tmp_path / LOGS))
        if capture
        else "ValueError: boom"
    )


@pytest.mark.slow
def test_a_stage_that_kills_its_workers_ends_a_run_that_does_not_keep_going(tmp_path):
    killer = one("test_die", "k", times=1)
    with pytest.raises(TombolaError, match=r"k: its worker died .* Its log: "):
        Local(workers=2, threads=1, retries=0).run([killer], Store(tmp_path), Watcher(), keep_going=False)


def test_the_longest_road_is_begun_first(tmp_path):
    chain = one("test_write", "1")
    for text in "234":
        chain = one("test_write", text, chain)
    short = [one("test_write", text) for text in "abc"]
    schedule = Schedule(topological_order([*short, chain]), Store(tmp_path), Watcher())
    assert schedule.take().label == "1"


@given(
    st.lists(st.lists(st.integers(0, 30), max_size=3), min_size=1, max_size=25), st.sets(st.integers(0, 24))
)
def test_any_graph_is_run_in_order_and_accounted_for(graph, failing):
    """Every stage ends in exactly one of: ran, failed, blocked; and none before its inputs."""
    import tempfile

    stages = []
    for index, before in enumerate(graph):
        inputs = {str(i): stages[i % index] for i in before} if index else {}
        stages.append(one("test_write", str(index), *inputs.values()))
    with tempfile.TemporaryDirectory() as folder:
        schedule = Schedule(topological_order(stages), Store(folder), Watcher())
        done = set()
        while stage := schedule.take():
            assert all(before.key in done for before in stage.inputs.values())
            bad = int(stage.label) in failing
            done |= set() if bad else {stage.key}
            schedule.end(stage, "no" if bad else None)
    outcome = schedule.outcome
    assert schedule.over
    ends = [*outcome.ran, *outcome.blocked, *(failure.stage for failure in outcome.failures)]
    assert sorted(stage.key for stage in ends) == sorted(stage.key for stage in stages)
    assert all(any(b.key in outcome.unfinished for b in stage.inputs.values()) for stage in outcome.blocked)
