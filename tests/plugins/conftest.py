"""Plugins for the time of a test."""

from collections.abc import Iterator

import pytest

from tombola.foundations import plugins


@pytest.fixture(autouse=True)
def _forget_plugins() -> Iterator[None]:
    """Remove what a test loads."""
    before = {plugin.module for plugin in plugins.loaded_plugins()}
    yield
    for plugin in plugins.loaded_plugins():
        if plugin.module not in before:
            plugins.forget(plugin)
