"""The index of deletions finds exactly what a search through all words finds, and the channel ranks as people err."""

from random import Random

import pytest

from tombola.defenses.candidates import LONGEST, DeletionIndex
from tombola.defenses.channel import IMPOSSIBLE, log_likelihood


def deleted(word: str, edits: int) -> set[str]:
    found = {word}
    for _ in range(edits):
        found |= {one[:i] + one[i + 1 :] for one in found for i in range(len(one))}
    return found


@pytest.mark.parametrize("edits", [1, 2])
def test_the_index_finds_what_comparing_all_deletions_finds(edits: int) -> None:
    random = Random(1)
    words = sorted({"".join(random.choices("abcé", k=random.randrange(3, 8))) for _ in range(400)})
    index = DeletionIndex(words, edits)
    for typed in [*words[:60], "abcabcab", "xxxx", "éé"]:
        plain = {word for word in words if deleted(word, edits) & deleted(typed, edits)}
        assert index.near(typed) == plain


def test_the_index_is_empty_or_asked_for_nothing_or_for_too_much() -> None:
    assert DeletionIndex([], 1).near("word") == set()
    index = DeletionIndex(["word", "x" * (LONGEST + 1)], 2)
    assert index.near("") == set()
    assert index.near("x" * 99) == set()
    assert index.near("wrod") == {"word"}


def test_likelier_slips_score_higher() -> None:
    film = {
        typed: log_likelihood("film", typed, 1) for typed in ("flim", "fil", "fikm", "fizm", "fillm", "fizlm")
    }
    assert (
        film["fil"] > film["flim"] > film["fikm"] > film["fizm"]
    )  # omitted, swapped, the key beside, any letter
    assert film["fillm"] > film["fizlm"]  # doubled, any letter
    assert log_likelihood("good", "go0d", 1) > log_likelihood("good", "go7d", 1)  # what looks alike
    assert log_likelihood("jose", "josé", 1) == IMPOSSIBLE  # another word


@pytest.mark.parametrize("typed", ["beatiful", "baeutifull", "beautifulll", "eautifu", "beuatifl"])
def test_two_errors_are_less_likely_than_one_and_more_than_three(typed: str) -> None:
    one, two = log_likelihood("beautiful", typed, 1), log_likelihood("beautiful", typed, 2)
    assert two > IMPOSSIBLE
    assert one in (two, IMPOSSIBLE)
    assert two < log_likelihood("beautiful", "beautful", 2) or one == two
    assert log_likelihood("beautiful", "xeauxifxl", 2) == IMPOSSIBLE
