from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tombola.attacks import edits

words = st.text("abcdefghijklmnopqrstuvwxyzAB'é7", min_size=1, max_size=9)
seeds = st.integers(0, 1000).map(Random)


@given(words, seeds)
def test_lengths(word, random):
    assert len(edits.insert(word, random)) == len(word) + 1
    assert len(edits.substitute(word, random)) == len(word)
    for edit in (edits.delete, edits.delete_inside):
        made = edit(word, random)
        assert made is None or len(made) == len(word) - 1
    for edit in (edits.swap, edits.swap_inside):
        made = edit(word, random)
        assert made is None or sorted(made) == sorted(word)


@given(words, seeds)
def test_textbuggers_edits_keep_the_ends(word, random):
    for edit in (edits.delete_inside, edits.swap_inside, edits.insert_blank):
        made = edit(word, random)
        assert made is None or (made[0], made[-1]) == (word[0], word[-1])


@given(words, seeds)
def test_blanks_break_short_words_only(word, random):
    made = edits.insert_blank(word, random)
    assert (made is not None) == (2 <= len(word) <= 5)
    assert made is None or made.replace(" ", "") == word


def test_look_alikes():
    assert edits.substitute_look_alike("oo", Random(0)) in ("0o", "o0")
    assert edits.substitute_look_alike("m", Random(0)) == "n"
    assert edits.substitute_look_alike("p", Random(0)) == "o"
    assert edits.substitute_look_alike("77", Random(0)) is None


def test_variants_differ_from_the_word_and_from_each_other():
    found = edits.edited("aa", [edits.swap, edits.delete, edits.delete, edits.insert], Random(0))
    assert "aa" not in found
    assert len(set(found)) == len(found)
    assert "a" in found
