"""Threads that wait for each other."""

import os
import subprocess
import sys

import pytest

from tombola.foundations.hardware.threads import PATIENT, wait_patiently

SHOW = "import os; from tombola.cli.options import start; start(); print(os.environ['GOMP_SPINCOUNT'])"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment in which the user has chosen nothing."""
    for name in PATIENT:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_threads_sleep_by_default(bare: pytest.MonkeyPatch) -> None:
    wait_patiently()
    chosen = {name: os.environ[name] for name in PATIENT}
    for name in PATIENT:
        bare.delenv(name)
    assert chosen == PATIENT


@pytest.mark.parametrize("name", PATIENT)
def test_a_choice_of_the_user_stands_alone(bare: pytest.MonkeyPatch, name: str) -> None:
    bare.setenv(name, "7")
    wait_patiently()
    assert {one: os.environ[one] for one in PATIENT if one in os.environ} == {name: "7"}


def test_every_command_waits_patiently(bare: pytest.MonkeyPatch) -> None:
    found = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == PATIENT["GOMP_SPINCOUNT"]
