from math import cos, pi

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attacks.toys import alone
from tombola.attacks.constraints import (
    MaxChanged,
    MaxEdits,
    PartOfSpeech,
    SentenceSimilarity,
    levenshtein,
    satisfying,
)
from tombola.attacks.requests import SIMILAR
from tombola.attacks.text import Text
from tombola.words.lexicon import Lexicon


def kept(constraints, current, candidates, oracle=None):
    """Return the candidates that satisfy the constraints; `oracle` gives the cosines of pairs of texts."""

    def similar(keys):
        cosines = oracle([key[:2] for key in keys])
        return [cosine >= least for cosine, (_, _, least) in zip(cosines, keys, strict=True)]

    return alone(satisfying(constraints, current, candidates), {SIMILAR: similar}).outcome


def test_max_changed_counts_against_the_origin():
    text = Text("a b c d e")
    once = text.replace(0, "x")
    twice, thrice = once.replace(1, "y"), once.replace(1, "y").replace(2, "z")
    assert kept([MaxChanged(0.4)], text, [once, twice, thrice]) == [once, twice]
    assert kept([MaxChanged(0.0)], text, [once, twice]) == [once]


def test_max_edits_adds_up_over_words():
    text = Text("film plot")
    candidates = [text.replace(0, "flim"), text.replace(0, "fil").replace(1, "plots"), text.replace(0, "x")]
    assert kept([MaxEdits(2)], text, candidates) == candidates[:2]
    assert kept([MaxEdits(1)], text, candidates) == []


def test_part_of_speech_compares_with_the_original_word():
    text = Text("good film")
    current = text.replace(0, "goodly")
    candidates = [current.replace(0, "decent"), current.replace(0, "decently")]
    assert kept([PartOfSpeech(Lexicon())], current, candidates) == candidates[:1]


def test_constraints_are_asked_in_turn_and_about_what_is_left():
    asked = []

    def oracle(pairs):
        asked.extend(pairs)
        return [0.9] * len(pairs)

    text = Text("good film")
    candidates = [text.replace(0, "decent"), text.replace(0, "decently")]
    constraints = [PartOfSpeech(Lexicon()), SentenceSimilarity(0.8)]
    assert kept(constraints, text, candidates, oracle) == candidates[:1]
    assert asked == [("good film", "decent film")]


@pytest.mark.parametrize(("to", "reference"), [("origin", "w3 w4 w5"), ("current", "w3 x4 w5")])
def test_similarity_compares_windows_with_the_origin_or_the_step_before(to, reference):
    text = Text("w0 w1 w2 w3 w4 w5 w6")
    current = text.replace(0, "x0").replace(4, "x4")
    asked = []

    def oracle(pairs):
        asked.extend(pairs)
        return [0.5] * len(pairs)

    candidate = current.replace(4, "y4")
    assert kept([SentenceSimilarity(0.6, window=3, to=to)], current, [candidate], oracle) == []
    assert asked == [(reference, "w3 y4 w5")]


def test_thresholds_of_both_metrics():
    text = Text("a b")
    candidate = [text.replace(0, "x")]
    at = lambda value: lambda pairs: [value] * len(pairs)  # noqa: E731
    assert kept([SentenceSimilarity(0.7)], text, candidate, at(0.7)) == candidate
    assert kept([SentenceSimilarity(0.7)], text, candidate, at(0.69)) == []
    angular = SentenceSimilarity(0.840845057, "angular")
    # the published 0.84 is an angle of half a radian
    assert 1 - 0.5 / pi == pytest.approx(angular.at_least)
    assert kept([angular], text, candidate, at(cos(0.499))) == candidate
    assert kept([angular], text, candidate, at(cos(0.501))) == []


words = st.text("abc", max_size=6)


@given(words, words, words)
def test_levenshtein_is_a_distance(a, b, c):
    assert levenshtein(a, b) == levenshtein(b, a)
    assert (levenshtein(a, b) == 0) == (a == b)
    assert levenshtein(a, c) <= levenshtein(a, b) + levenshtein(b, c)
    assert abs(len(a) - len(b)) <= levenshtein(a, b) <= max(len(a), len(b))


def test_levenshtein_of_known_words():
    assert levenshtein("kitten", "sitting") == 3
    assert levenshtein("flim", "film") == 2
