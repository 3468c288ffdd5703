import gc
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

from tests.world import World, make_world
from tombola.foundations import plugins

pytest_plugins = ["tests.foundations.bf16"]

settings.register_profile("busy machine", deadline=None, max_examples=50)
settings.load_profile("busy machine")


def pytest_collection_finish() -> None:
    """Every training looks for garbage, and need not look through all modules that the tests have imported."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A tiny pre-trained BERT and a task, made once."""
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Tests run side by side; a thread each is fastest."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _forget_plugins() -> Iterator[None]:
    """Remove the plugins that a test loads: what they register would show in later tests of the same process."""
    before = {plugin.module for plugin in plugins.loaded_plugins()}
    yield
    for plugin in plugins.loaded_plugins():
        if plugin.module not in before:
            plugins.forget(plugin)
