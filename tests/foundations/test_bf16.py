"""The marker `bf16` runs a test, or skips it and says what the trial found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.foundations.hardware.stand_ins import killed, timed

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
from tombola.foundations.hardware import precision

precision.TRIAL = {command!r}

@pytest.mark.parametrize("kind", ["fp32", pytest.param("bf16", marks=pytest.mark.bf16)])
def test_it(kind):
    pass
"""


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        (timed([1.0], [3.0]), "2 passed"),
        (killed("SIGILL"), "bf16 does not run on this machine: the bf16 trial was killed by SIGILL"),
    ],
    ids=["slow", "crashes"],
)
def test_only_bf16_that_does_not_run_is_skipped(command: list[str], outcome: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS.format(command=command))
    environment = {**os.environ, "TOMBOLA_CACHE": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    pytest_command = [
        sys.executable,
        "-m",
        "pytest",
        "--strict-markers",
        "-rs",
        "-p",
        "tests.foundations.bf16",
    ]
    done = subprocess.run(
        [*pytest_command, "-c", os.devnull, f"--rootdir={tmp_path}", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert outcome in done.stdout
    assert ("1 passed, 1 skipped" in done.stdout) == ("SIGILL" in outcome)
