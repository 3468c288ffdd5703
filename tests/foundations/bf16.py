"""The marker `bf16`: the test computes in bf16, and is skipped where a trial says that bf16 does not run.

The tests' conftest.py loads it with `pytest_plugins = ["tests.foundations.bf16"]`. It also works for one value of
a parameter: `pytest.param("bf16", marks=pytest.mark.bf16)`.
"""

import pytest

from tombola.foundations.hardware import probe_precision


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "bf16: computes in bf16; skipped where a trial of bf16 does not finish"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("bf16"):
        verdict = probe_precision(threads=1)
        if verdict.bf16_seconds is None:
            pytest.skip(f"bf16 does not run on this machine: {verdict.reason}")
