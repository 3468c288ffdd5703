from hypothesis import given
from hypothesis import strategies as st

from tombola.attacks.text import Text, same_case

anything = st.lists(st.text(max_size=60), min_size=1, max_size=2)


@given(anything)
def test_a_text_is_given_back_character_by_character(columns):
    assert Text(columns).columns == tuple(columns)


@given(anything, st.data())
def test_replacing_keeps_everything_else(columns, data):
    text = Text(columns)
    if not text.words:
        return
    i = data.draw(st.sampled_from(text.positions()))
    edited = text.replace(i, "XYZ")
    assert edited.replace(i, text.words[i]).columns == text.columns
    assert edited.changes == ({i: "XYZ"} if text.words[i] != "XYZ" else {})
    assert sum(map(len, edited.columns)) == sum(map(len, columns)) - len(text.words[i]) + 3
    assert text.columns == tuple(columns)


@given(anything)
def test_spans_point_at_the_words(columns):
    text = Text(columns)
    for c, column in enumerate(columns):
        for i, (start, end) in text.spans(c).items():
            assert column[start:end] == text.words[i]
            assert text.column_of(i) == c


def test_words_and_punctuation():
    text = Text("It 's a well-made film -- isn't it?  (Yes!)")
    assert text.words == ("It", "'s", "a", "well-made", "film", "isn't", "it", "Yes")
    assert text.replace(4, "movie").columns == ("It 's a well-made movie -- isn't it?  (Yes!)",)


def test_deleting_takes_one_blank_along():
    text = Text("a dull film, sadly")
    assert text.delete(1).columns == ("a film, sadly",)
    assert text.delete(0).columns == ("dull film, sadly",)
    assert text.delete(2).columns == ("a dull , sadly",)
    assert text.delete(3).columns == ("a dull film, ",)
    assert text.delete(1).delete(2).columns == ("a , sadly",)


def test_columns_share_one_numbering():
    text = Text(("one two", "three four five"))
    assert text.positions() == [0, 1, 2, 3, 4]
    assert text.positions({1}) == [2, 3, 4]
    assert [text.column_of(i) for i in text.positions()] == [0, 0, 1, 1, 1]
    assert text.replace(2, "3").columns == ("one two", "3 four five")
    assert text.delete(2).columns == ("one two", "four five")
    assert text.column_length(4) == 3


def test_changed_share_counts_words_of_all_columns_once():
    text = Text(("one two", "three four"))
    edited = text.replace(0, "1").replace(0, "uno").replace(3, "4")
    assert edited.changes == {0: "uno", 3: "4"}
    assert edited.changed_share == 0.5
    assert edited.replace(3, "four").changed_share == 0.25
    assert text.with_changes(edited.changes).columns == edited.columns


def test_window_keeps_its_size_at_the_ends():
    text = Text("w0 w1, w2 w3 w4 w5 w6.")
    assert text.window(3, 3) == "w2 w3 w4"
    assert text.window(0, 3) == "w0 w1, w2"
    assert text.window(6, 3) == "w4 w5 w6"
    assert text.window(6) == text.columns[0]
    pair = Text(("a b c", "d e f g"))
    assert pair.window(4, 2) == "d e"
    assert pair.window(2, 9) == "a b c"


def test_sentences_and_one_of_them_alone():
    text = Text(("Good start. Mr. X falls! The end", "Other one. Yes"))
    assert [list(s) for s in text.sentences()] == [[0, 1], [2], [3, 4], [5, 6], [7, 8], [9]]
    assert text.only(range(3, 5)).columns == ("X falls", "Other one. Yes")
    assert text.only(range(9, 10)).columns == ("Good start. Mr. X falls! The end", "Yes")


def test_same_case():
    assert same_case("film", like="Movie") == "Film"
    assert same_case("film", like="MOVIE") == "FILM"
    assert same_case("film", like="movie") == "film"
    assert same_case("we", like="I") == "We"
