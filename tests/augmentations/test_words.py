"""Where words are, which keys touch, which letters look alike."""

import time
from collections.abc import Callable, Iterable

import pytest

from tombola.defenses.corrector import tokens
from tombola.errors import TombolaError
from tombola.words import english as english_module
from tombola.words.english import english, parse_dictionary
from tombola.words.homoglyphs import CYRILLIC, GREEK, TO_LATIN
from tombola.words.keyboard import NEIGHBOURS
from tombola.words.scanning import word_spans


def words_in(text: str) -> list[str]:
    return [text[start:end] for start, end in word_spans(text)]


def test_neighbours_are_mutual_and_every_key_has_some() -> None:
    assert set(NEIGHBOURS) == set("abcdefghijklmnopqrstuvwxyz")
    assert all(key in NEIGHBOURS[other] for key, near in NEIGHBOURS.items() for other in near)
    assert set(NEIGHBOURS["s"]) == set("weadzx")
    assert "p" not in NEIGHBOURS["a"]


def test_homoglyphs_fold_back_to_the_letter_that_they_came_from() -> None:
    for table in (CYRILLIC, GREEK):
        assert all(not look.isascii() and TO_LATIN[look] == letter for letter, look in table.items())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A film's don't, o'brien.", ["A", "film", "don't", "o'brien"]),
        ("it 's ca n't", ["it", "ca", "n't"]),
        ("straight-faced 'hello'", ["straight", "faced", "hello"]),
        ("see https://x.org/a?b www.x.com me@x.org now", ["see", "now"]),
        ("[MASK] <s> </s> <|end|> <br /> -LRB- b -rrb-", ["b"]),
        ("mp3 3d 1999 k2 a_b", []),
        ("#tag @name &amp; #39;s :-) ok", ["ok"]),
        ("cafe\u0301 हिन्दी 我love你 привет naïve", ["привет", "naïve"]),
        ("một bộ phim hay", ["một", "bộ", "phim", "hay"]),
        ("", []),
    ],
)
def test_words_are_found_and_what_only_looks_like_words_is_not(text: str, words: list[str]) -> None:
    assert words_in(text) == words


def test_a_missing_dictionary_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(english_module, "PACKAGE", "no_such_package_here")
    english.cache_clear()
    with pytest.raises(TombolaError, match=r"tombola\[spelling\]"):
        english()
    english.cache_clear()


def test_a_dictionary_is_its_counts_and_a_hash_of_them() -> None:
    first, second = parse_dictionary(b"\xef\xbb\xbfthe 9\nof 4\n"), parse_dictionary(b"the 9\nof 5\n")
    assert first.counts == {"the": 9, "of": 4}
    assert first.fingerprint != second.fingerprint


@pytest.mark.parametrize("end", ["", "@电影"])
@pytest.mark.parametrize("find", [word_spans, tokens])
def test_a_long_text_without_blanks_is_read_once(find: Callable[[str], Iterable[object]], end: str) -> None:
    start = time.process_time()
    assert not list(find("电影" * 20_000 + end))
    assert time.process_time() - start < 2  # 10 seconds if every letter reads to the end
