"""Every run begins with a garbage collection; over all imported modules that takes longer than the run."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _frozen_modules() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
