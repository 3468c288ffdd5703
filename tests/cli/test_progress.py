"""What long work shows: the time left, plain lines without a terminal, bars on one, events for programs."""

import io
import json
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest
from rich.console import Console

from tombola.cli.bars import Bars
from tombola.cli.events import Events
from tombola.cli.forecast import Forecast, Job, TimeLeft, duration, left
from tombola.cli.progress import LINE_SECONDS, Display, Failures, Lines

NOON = datetime(2026, 1, 1, 12, 0, 0)


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self):
        self.time = 1000.0

    def __call__(self):
        return self.time


@dataclass(frozen=True)
class Step:
    kind: str
    label: str
    steps: int = 0
    seed: int | None = None
    inputs: dict = field(default_factory=dict)

    @property
    def key(self):
        return f"{self.label}-{self.seed}"

    @property
    def name(self):
        return f"{self.kind}/{self.key}"

    def training_steps(self):
        return self.steps


@dataclass(frozen=True)
class Fault:
    reason: str
    log: Path


TRAIN = Step("train", "fine-tune", 100, seed=1)
TICKET = Step("train", "train the ticket", 200, seed=1, inputs={"start": TRAIN})
SCORE = Step("evaluate", "evaluate on test", inputs={"model": TICKET})
STAGES = [TRAIN, TICKET, SCORE]


@pytest.fixture
def clock():
    return Clock()


def lines_of(clock):
    stream = io.StringIO()
    view = Lines(stream, now=lambda: NOON)
    return Display(view, clock=clock), view, stream


# --- the time left


def test_nothing_is_known_before_the_second_report(clock):
    forecast = Forecast(clock)
    forecast.planned(STAGES, ())
    forecast.begun(TRAIN)
    assert forecast.run_left() is None
    clock.time += 20  # loading the model
    forecast.progressed(TRAIN, 1, 100, {})
    assert forecast.stage_left(TRAIN.key) is None
    clock.time += 9
    forecast.progressed(TRAIN, 10, 100, {})
    assert forecast.stage_left(TRAIN.key) == pytest.approx(90)  # a second a step


def test_the_time_left_runs_down_between_reports(clock):
    forecast = Forecast(clock)
    forecast.planned([TRAIN], ())
    forecast.begun(TRAIN)
    forecast.progressed(TRAIN, 0, 100, {})
    clock.time += 10
    forecast.progressed(TRAIN, 10, 100, {})
    clock.time += 8
    assert forecast.stage_left(TRAIN.key) == pytest.approx(82)
    forecast.progressed(TRAIN, 100, 100, {})
    clock.time += 1000
    assert forecast.stage_left(TRAIN.key) == 0


def test_an_overdue_report_slows_the_pace(clock):
    forecast = Forecast(clock)
    forecast.planned([TRAIN], ())
    forecast.begun(TRAIN)
    for step in range(1, 9):
        forecast.progressed(TRAIN, step, 1000, {})
    clock.time += 80
    assert forecast.stage_left(TRAIN.key) == pytest.approx(
        10 * 991
    )  # eight steps in 80 s, if the next one ends now
    clock.time += 80
    assert forecast.stage_left(TRAIN.key) == pytest.approx(20 * 991)


def test_a_continued_training_is_timed_from_where_it_goes_on(clock):
    forecast = Forecast(clock)
    forecast.planned([TRAIN], ())
    forecast.begun(TRAIN)
    forecast.progressed(TRAIN, 60, 100, {})
    clock.time += 20
    forecast.progressed(TRAIN, 70, 100, {})
    assert forecast.stage_left(TRAIN.key) == pytest.approx(60)  # 30 steps of 2 s, not of 20/70 s


def test_a_waiting_training_is_estimated_by_the_steps_of_its_like(clock):
    forecast = Forecast(clock)
    forecast.planned(STAGES, ())
    forecast.begun(TRAIN)
    clock.time += 50
    forecast.ended(TRAIN)
    found = forecast.run_left()
    assert found == TimeLeft(
        pytest.approx(100), whole=False
    )  # 200 steps of half a second; evaluate is unknown
    forecast.begun(TICKET)
    clock.time += 30
    assert forecast.stage_left(TICKET.key) == pytest.approx(70)  # before its own first report
    clock.time += 70
    forecast.ended(TICKET)
    forecast.begun(SCORE)
    clock.time += 5
    assert forecast.run_left() is None
    forecast.ended(SCORE)
    assert (forecast.finished, forecast.ran) == (3, 3)


def test_finished_stages_do_not_count_and_workers_share_the_rest(clock):
    forecast = Forecast(clock)
    trainings = [Step("train", "fine-tune", 100, seed=seed) for seed in range(6)]
    forecast.planned(trainings, {trainings[0].key})
    for stage in trainings[1:3]:
        forecast.begun(stage)
    clock.time += 60
    forecast.ended(trainings[1])
    forecast.begun(trainings[3])
    forecast.ended(trainings[2])
    forecast.begun(trainings[4])
    # two run and one waits, 60 s each, on two workers
    assert forecast.run_left() == TimeLeft(pytest.approx(90))


def test_what_needs_a_failed_stage_is_not_waited_for(clock):
    forecast = Forecast(clock)
    forecast.planned([*STAGES, Step("train", "other", 100)], ())
    forecast.begun(TRAIN)
    clock.time += 10
    forecast.ended(TRAIN, failed=True)
    other = Step("train", "other", 100)
    forecast.begun(other)
    forecast.progressed(other, 0, 100, {})
    clock.time += 10
    forecast.progressed(other, 50, 100, {})
    assert forecast.run_left() == TimeLeft(pytest.approx(10))


def test_times_are_written_as_people_say_them():
    assert [duration(s) for s in (0.04, 3.21, 45, 59.6, 245, 3600, 7800)] == [
        "0.0 s", "3.2 s", "45 s", "1 min", "4 min 5 s", "1 h", "2 h 10 min",
    ]  # fmt: skip
    assert left(None) == "time left unknown"
    assert left(240.0) == "about 4 min left"
    assert left(TimeLeft(9000, whole=False)) == "more than 2.5 h left"


# --- plain lines


def test_a_run_in_a_log_file(clock):
    display, view, stream = lines_of(clock)
    display.planned(STAGES, ())
    display.begun(TRAIN)
    display.progressed(TRAIN, 1, 100, {"loss": 0.7, "epoch": 0.1, "learning_rate": 1e-4})
    clock.time += 60
    display.progressed(TRAIN, 61, 100, {"loss": 0.412, "epoch": 0.6, "learning_rate": 1e-4})
    view.tick()
    clock.time += 39
    display.ended(TRAIN, None)
    display.begun(TICKET)
    clock.time += 3
    display.ended(TICKET, Fault("the loss is NaN at step 3.", Path("store/logs/x.log")))
    display.close()
    assert stream.getvalue().splitlines() == [
        "12:00:00 3 stages, 0 finished, 3 to run",
        "12:00:00 [1/3] fine-tune, seed 1: started",
        "12:00:00 [1/3] fine-tune, seed 1: step 61 of 100, loss 0.412, 1 min so far, about 40 s left; "
        "run: more than 4 min left",
        "12:00:00 [1/3] fine-tune, seed 1: finished in 1 min 39 s, loss 0.412",
        "12:00:00 [2/3] train the ticket, seed 1: started",
        "12:00:00 [2/3] train the ticket, seed 1: failed after 3.0 s: the loss is NaN at step 3. "
        "Log: store/logs/x.log",
        "12:00:00 1 stage finished in 1 min 42 s",
    ]
    assert "\x1b" not in stream.getvalue()
    assert "\r" not in stream.getvalue()


def test_a_line_comes_every_minute_even_if_a_stage_reports_nothing(clock):
    display, view, stream = lines_of(clock)
    display.planned([TRAIN, SCORE], {TRAIN.key})
    display.begun(SCORE)
    for _ in range(10 * 60):
        clock.time += 1
        view.tick()
    lines = stream.getvalue().splitlines()[2:]
    assert len(lines) == 10 * 60 // LINE_SECONDS
    assert LINE_SECONDS < 60
    assert lines[0] == (
        "12:00:00 [2/2] evaluate on test: 50 s so far, time left unknown; run: time left unknown"
    )


def test_each_of_several_running_stages_is_heard_of(clock):
    display, view, stream = lines_of(clock)
    stages = [Step("train", "fine-tune", 100, seed=seed) for seed in (1, 2)]
    display.planned(stages, ())
    for stage in stages:
        display.begun(stage)
    clock.time += LINE_SECONDS
    view.tick()
    view.tick()
    assert [line.split(":")[2].split("]")[0] for line in stream.getvalue().splitlines()[-2:]] == [
        "00 [1/2", "00 [2/2",
    ]  # fmt: skip


def test_planning_begins_with_a_line_and_is_not_silent_for_long(clock):
    display, view, stream = lines_of(clock)
    display.phase("planning")
    assert stream.getvalue() == "12:00:00 planning\n"
    clock.time += LINE_SECONDS - 1
    view.tick()
    assert stream.getvalue().count("\n") == 1
    clock.time += 1
    view.tick()
    assert stream.getvalue().endswith("12:00:00 still planning, 50 s so far\n")


def test_short_phases_after_the_first_say_nothing(clock):
    display, _, stream = lines_of(clock)
    display.phase("planning")
    display.phase("writing results")
    assert stream.getvalue() == "12:00:00 planning\n"


def test_the_heart_beats_by_itself():
    stream = io.StringIO()
    with Display(Lines(stream, every=0.1)) as display, display.job("export", "export small"):
        deadline = time.monotonic() + 20
        while stream.getvalue().count("so far") < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
    assert stream.getvalue().count("export small: 0.") >= 2
    assert "finished in" in stream.getvalue().splitlines()[-1]


def test_one_piece_of_work_has_no_number_and_no_time_of_the_run(clock):
    display, view, stream = lines_of(clock)
    with display.job("attack", "attack with pwws") as progress:
        progress(0, 500, {})
        clock.time += 60
        progress(120, 500, {"under attack": 0.3125})
        view.tick()
    assert stream.getvalue().splitlines()[1] == (
        "12:00:00 attack with pwws: step 120 of 500, under attack 0.3125, 1 min so far, about 3 min left"
    )


def test_quiet_shows_failures_alone(clock):
    stream = io.StringIO()
    display = Display(Failures(stream, now=lambda: NOON), clock=clock)
    display.planned(STAGES, ())
    display.begun(TRAIN)
    display.progressed(TRAIN, 5, 10, {})
    display.ended(TRAIN, Fault("disk full", Path("x.log")))
    display.close()
    assert (
        stream.getvalue() == "12:00:00 [1/3] fine-tune, seed 1: failed after 0.0 s: disk full. Log: x.log\n"
    )


# --- bars


def drawn(display, view, width=80):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(view.render())
    return console.file.getvalue().splitlines()


def test_the_bars_fit_eighty_columns(clock):
    view = Bars(Console(file=io.StringIO()))
    display = Display(view, clock=clock)
    stages = [Step("train", "train a ticket with a very long name on /a/long/path/task.yaml", 5000, seed=seed)
              for seed in range(12)]  # fmt: skip
    display.planned(stages, {stages[0].key})
    for stage in stages[1:11]:
        display.begun(stage)
        display.progressed(stage, 0, 5000, {"loss": 0.6931, "learning_rate": 1e-5})
    clock.time += 60
    for stage in stages[1:11]:
        display.progressed(stage, 1234, 5000, {"loss": 0.6931, "learning_rate": 1e-5})
    lines = drawn(display, view)
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("stage 11 of 12 ")
    assert lines[0].rstrip().endswith("about 3 min left")
    assert "1234/5000 loss 0.6931 about 3 min left" in lines[1]
    assert lines[-1] == "  and 2 more"
    assert len(lines) == 1 + 8 + 1


def test_while_nothing_runs_the_bars_name_the_phase(clock):
    view = Bars(Console(file=io.StringIO()))
    display = Display(view, clock=clock)
    display.phase("writing results")
    assert "writing results" in "".join(drawn(display, view))


def test_drawing_does_not_wait_for_whoever_prints(clock):
    import threading

    view = Bars(Console(file=io.StringIO()))
    display = Display(view, clock=clock)
    display.planned(STAGES, ())
    display.begun(TRAIN)
    with view.lock:
        thread = threading.Thread(target=view.render, daemon=True)
        thread.start()
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_a_failure_stays_on_the_terminal_with_its_log(clock):
    stream = io.StringIO()
    view = Bars(Console(file=stream, width=80))
    display = Display(view, clock=clock)
    display.planned(STAGES, ())
    display.begun(TRAIN)
    display.ended(TRAIN, Fault("no [memory] left", Path("/a/very/long/path/" + "x" * 90 + ".log")))
    assert "failed fine-tune, seed 1: no [memory] left" in stream.getvalue()
    assert "/a/very/long/path/" + "x" * 90 + ".log" in stream.getvalue()


# --- events


STAGE_KEYS = {"stage", "kind", "label", "number", "stages"}
SCHEMA = {
    "planned": {"stages", "finished", "to_run"},
    "begun": STAGE_KEYS,
    "progressed": STAGE_KEYS
    | {"step", "steps", "figures", "stage_seconds_left", "run_seconds_left", "run_seconds_left_is_lower_bound"},
    "ended": STAGE_KEYS | {"seconds", "figures"},
    "failed": STAGE_KEYS | {"seconds", "reason", "log"},
}  # fmt: skip


def test_events_have_their_fields_and_progress_comes_once_a_second(clock):
    stream = io.StringIO()
    display = Display(Events(stream, now=lambda: NOON), clock=clock)
    display.planned(STAGES, {SCORE.key})
    display.begun(TRAIN)
    for step in range(1, 101):
        clock.time += 0.1
        display.progressed(TRAIN, step, 100, {"loss": float("nan") if step == 100 else 0.5})
    display.ended(TRAIN, None)
    display.begun(TICKET)
    display.ended(TICKET, Fault("boom", Path("x.log")))
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    for event in events:
        assert set(event) == SCHEMA[event["event"]] | {"event", "time"}
        assert datetime.fromisoformat(event["time"]).tzinfo is not None
    steps = [event["step"] for event in events if event["event"] == "progressed"]
    assert steps == [1, *range(11, 100, 10), 100]
    assert events[0] | {"time": ""} == {
        "event": "planned", "time": "", "stages": 3, "finished": 1, "to_run": 2,
    }  # fmt: skip
    assert events[-3]["figures"] == {"loss": None}  # NaN is no JSON
    assert events[-1]["reason"] == "boom"
    assert events[1]["stage"] == TRAIN.name


def test_several_views_see_the_same(clock):
    one, two = io.StringIO(), io.StringIO()
    display = Display(Lines(one, now=lambda: NOON), Events(two), clock=clock)
    display.planned([Job("attack", "a"), Job("attack", "b")], ())
    with display.job("attack", "a"):
        clock.time += 2
    assert "[1/2] a: finished in 2.0 s" in one.getvalue()
    assert json.loads(two.getvalue().splitlines()[-1])["seconds"] == 2
