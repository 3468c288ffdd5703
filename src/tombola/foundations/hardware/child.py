"""Run programs in a child process, since an instruction that the processor advertises may kill them."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """How a child process ended.

    Args:
        output: Its printed output.
        code: Its exit code; None if it never started or a signal ended it.
        killed_by: The signal that ended it, such as `SIGILL`.
        timed_out: Whether it was stopped because it took too long.
        worked: Seconds of processor time that it used, if it was stopped.
        not_started: Why it could not start.
    """

    output: str = ""
    code: int | None = None
    killed_by: str | None = None
    timed_out: bool = False
    worked: float = 0.0
    not_started: str | None = None

    def report(self) -> dict[str, Any]:
        """Merge the JSON objects among the printed lines, later ones overriding earlier ones; other lines are ignored.

        Raises:
            ValueError: If a line begins like a JSON object but is not valid.
        """
        merged: dict[str, Any] = {}
        for line in self.output.splitlines():
            if line.startswith("{"):
                merged |= json.loads(line)
        return merged


def run_child(
    command: Sequence[str], timeout: float, environment: Mapping[str, str] | None = None
) -> Outcome:
    """Run a program to its end, whatever that is.

    Args:
        command: The program and its arguments.
        timeout: Seconds after which it is stopped.
        environment: Default environment variables of the child; this process's own take precedence.
    """
    before = _children_worked()
    try:
        child = subprocess.run(
            command,
            env={**(environment or {}), **os.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return Outcome(timed_out=True, worked=_children_worked() - before)
    except OSError as error:
        return Outcome(not_started=error.strerror or str(error))
    if child.returncode < 0:
        return Outcome(child.stdout, killed_by=_signal_name(-child.returncode))
    return Outcome(child.stdout, child.returncode)


def _children_worked() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
