"""The marker `bf16` runs a test, or skips it and says what the trial found."""

import os
from pathlib import Path

import pytest

from tests.children import run_python
from tests.foundations.hardware.stand_ins import killed, timed

TESTS = """
import pytest
from tombola.foundations.hardware import precision

precision.TRIAL = {command!r}

@pytest.mark.parametrize("kind", ["fp32", pytest.param("bf16", marks=pytest.mark.bf16)])
def test_it(kind):
    pass
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        (timed([1.0], [3.0]), "2 passed"),
        (killed("SIGILL"), "bf16 does not run on this machine: the bf16 trial was killed by SIGILL"),
    ],
    ids=["slow", "crashes"],
)
def test_only_bf16_that_does_not_run_is_skipped(
    command: list[str], outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_it.py").write_text(TESTS.format(command=command))
    monkeypatch.setenv("TOMBOLA_CACHE", str(tmp_path))
    options = ["--strict-markers", "-rs", "-p", "tests.foundations.bf16", "-p", "no:cacheprovider"]
    printed = run_python("-m", "pytest", *options, "-c", os.devnull, f"--rootdir={tmp_path}", tmp_path)
    assert outcome in printed
    assert ("1 passed, 1 skipped" in printed) == ("SIGILL" in outcome)
