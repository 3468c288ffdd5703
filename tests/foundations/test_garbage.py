"""Garbage collection stays off inside, and is afterwards as it was."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from tombola.foundations.garbage import MANY, no_garbage_collection


class Node:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.me = self


def test_it_is_off_inside_and_on_again_afterwards():
    with no_garbage_collection():
        with no_garbage_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_on_again_after_an_error():
    @no_garbage_collection()
    def fail() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert gc.isenabled()


def test_it_stays_off_where_it_was_off():
    gc.disable()
    try:
        with no_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.fixture
def thawed() -> Iterator[None]:
    """Objects that the test session has frozen are ordinary ones."""
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()


def test_much_that_was_made_inside_is_old_and_still_freed_once_nobody_has_it(thawed):
    with no_garbage_collection():
        node = Node()
        kept = [[] for _ in range(MANY + 1)]
    assert any(one is node for one in gc.get_objects(generation=2))
    gone = weakref.ref(node)
    del node, kept
    gc.collect()
    assert gone() is None


def test_what_the_caller_has_frozen_stays_frozen(thawed):
    gc.freeze()
    frozen = gc.get_freeze_count()
    with no_garbage_collection():
        kept = [[] for _ in range(MANY + 1)]
    assert gc.get_freeze_count() >= frozen
    assert len(kept) > MANY
