"""Whatever end a child process comes to, this process sees it and goes on."""

import pytest

from tests.foundations.hardware.stand_ins import killed, printing, program
from tombola.foundations.hardware.child import Outcome, run_child


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (program("print('fine')"), Outcome("fine\n", 0)),
        (program("raise SystemExit(3)"), Outcome("", 3)),
        (killed("SIGILL", after_fp32=False), Outcome("", killed_by="SIGILL")),
        (["/no/such/program"], Outcome(not_started="No such file or directory")),
    ],
    ids=["well", "an exit code", "a signal", "no start"],
)
def test_ends(command: list[str], expected: Outcome) -> None:
    assert run_child(command, timeout=60) == expected


@pytest.mark.thorough
def test_a_child_that_hangs_is_stopped() -> None:
    asleep = run_child(program("import time; time.sleep(60)"), timeout=1)
    at_work = run_child(program("while True: pass"), timeout=3)
    assert asleep.timed_out
    assert at_work.timed_out
    assert asleep.worked < at_work.worked


def test_what_was_printed_before_the_end_is_kept() -> None:
    outcome = run_child(printing({"a": 1, "b": 1}, "no JSON", {"b": 2}, then="os.kill(os.getpid(), 9)"), 60)
    assert (outcome.killed_by, outcome.report()) == ("SIGKILL", {"a": 1, "b": 2})
    with pytest.raises(ValueError, match="Expecting property name"):
        Outcome("{broken").report()


def test_variables_are_given_unless_the_user_set_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "kept")
    monkeypatch.delenv("GIVEN", raising=False)
    show = program("import os; print(os.environ['MINE'], os.environ['GIVEN'])")
    assert run_child(show, 60, {"MINE": "lost", "GIVEN": "new"}).output == "kept new\n"
