import pytest

from tombola.words.lexicon import Lexicon

LEXICON = Lexicon()


def test_synonyms_come_from_every_reading_of_the_word():
    assert {"movie", "picture", "flick"} <= set(LEXICON.synonyms("film"))
    assert {"movie", "flick"} <= set(LEXICON.synonyms("Films"))
    assert "goof" in LEXICON.synonyms("geese")
    assert {"operate", "campaign"} <= set(LEXICON.synonyms("ran"))
    assert LEXICON.synonyms("qwzx") == []


@pytest.mark.parametrize("word", ["film", "good", "run", "quickly", "movies"])
def test_synonyms_are_single_other_words_without_repetition(word):
    found = LEXICON.synonyms(word)
    assert found
    assert word not in found
    assert len(set(found)) == len(found)
    assert not any(" " in synonym or "_" in synonym for synonym in found)


@pytest.mark.parametrize(
    ("word", "tags"),
    [
        ("good", {"ADJ"}),
        ("well", {"ADV"}),
        ("films", {"NOUN"}),
        ("love", {"NOUN", "VERB"}),
        ("ran", {"VERB"}),
        ("The", {"DET"}),
        ("isn’t", {"AUX"}),
        ("1999", {"NUM"}),
        ("grokked", {"VERB", "ADJ"}),
        ("blorkly", {"ADV"}),
        ("blorkish", {"ADJ"}),
        ("blork", {"NOUN"}),
    ],
)
def test_parts_of_speech(word, tags):
    assert LEXICON.tags(word) == tags


def test_agreement_of_parts_of_speech():
    agree = LEXICON.same_part_of_speech
    assert agree("good", "decent")
    assert not agree("good", "decently")
    assert not agree("ran", "film")
    assert agree("ran", "film", verbs_as_nouns=True)
    assert not agree("ran", "good", verbs_as_nouns=True)


def test_stop_words_are_function_words():
    stopped = ["the", "Not", "doesn't", "doesn’t", "'s", "of", "they", "would", "because", "very"]
    assert all(map(LEXICON.is_stop_word, stopped))
    assert not any(map(LEXICON.is_stop_word, ["film", "good", "two", "wow", "run", "london"]))


@pytest.mark.parametrize(
    ("word", "other", "opposite"),
    [
        ("good", "bad", True),
        ("great", "awful", True),  # through what they are similar to
        ("Boring", "entertaining", True),
        ("fails", "succeeded", True),  # in any form
        ("best", "worst", True),
        ("good", "great", False),
        ("film", "movie", False),
        ("unheard-of-word", "bad", False),
    ],
)
def test_antonyms(word, other, opposite):
    assert LEXICON.are_opposites(word, other) is opposite
    assert LEXICON.are_opposites(other, word) is opposite
