from pathlib import Path

import pytest

from tombola.foundations.hardware import precision
from tombola.foundations.hardware.verdicts import ENVIRONMENT


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and a process that has not probed yet."""
    monkeypatch.setenv("TOMBOLA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(precision, "_known", {})
    monkeypatch.setattr(precision, "_logged", set())
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache" / "hardware"
