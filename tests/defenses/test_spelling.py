"""Spelling correction: what it restores, what it never touches, and that it comes back from disk as it was."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tombola.augmentations import Typos
from tombola.defenses import DEFENSE, Chain, DefenseList, Spelling, Unicode, fit_defenses, load_defense
from tombola.defenses import spelling as spelling_module
from tombola.defenses.base import _fingerprint
from tombola.errors import DamagedArtefact, RecipeError, TombolaError
from tombola.foundations.settings import Settings, checked
from tombola.words.english import Dictionary, parse_dictionary

DICTIONARY = parse_dictionary(
    b"the 900000\nof 500000\nand 400000\nis 200000\nmovie 20000\nstory 30000\nvie 200\nwriting 9000\n"
    b"wonderful 5000\nterrible 6000\nlanguage 12000\nboring 3000\n"
)
TEXTS = [
    "the film is a wonderful story of love and loss .",
    "a terrible movie with a boring plot and no story .",
    "the actors are wonderful , the plot is thin .",
    "Microsoft and eBay made a deal with Reuters on Monday .",
    "I don't like the boring film , but the movie is good",
    "a good film by Microsoft , it 's the best movie of the year",
] * 3


@pytest.fixture(autouse=True)
def _small_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spelling_module, "english", lambda: DICTIONARY)


FITTED = Spelling(dictionary=None).fit(TEXTS)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("a wonderfl film", "a wonderful film"),  # omitted
        ("a wnoderful film", "a wonderful film"),  # swapped
        ("a wondergul flim", "a wonderful film"),  # the key beside
        ("a wonderfuul film", "a wonderful film"),  # doubled
        ("a storyy", "a story"),  # doubled at the end
        ("a wondxerful film", "a wonderful film"),  # any letter inserted
        ("a wxnderful film", "a wonderful film"),  # any letter substituted
        ("a wnderfuul film", "a wonderful film"),  # two errors
        ("a b0ring m0vie", "a boring movie"),
        ("a terrib1e pl0t", "a terrible plot"),
        ("a fіlm", "a film"),  # with a Cyrillic і
        ("the pl ot is thin", "the plot is thin"),
        ("WONDERFL Wonderfl", "WONDERFUL Wonderful"),
        ("oGod", "Good"),  # swapped with its capital
        ("by icrosoft and eBqy", "by Microsoft and eBay"),  # as they are usually written
        ("i dno't like the bornig flim's plto .", "i don't like the boring film's plot ."),
    ],
)
def test_misspellings_are_restored(typed: str, meant: str) -> None:
    assert FITTED.correct(typed) == meant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "a https://wonderfl.org the me@flim.org, @flim #bornig [MASK] <s> 1999 3.5 mp3 :-)",
        "-lrb- the film -rrb-",
        "the  film\tis\u00a0wonderful …  \n",
        "McFilm iFilm",  # capitals inside
        "by FLM",  # short and in capitals
        "THE FILM'S STORY , ACTORS'S , WE 'RE",  # all in capitals
        "cafe\u0301 fi\u0301lm 👩‍👩‍👧 שלום عليكم हिन्दी 电影",
        "zzyzx qwrtpsdfgh",
        "x e.g. i.e. J. R. R. Tolkien",  # single letters
        "b11111111111111111111rd",  # many signs that could be letters
    ],
)
def test_what_is_no_misspelling_stays_to_the_byte(text: str) -> None:
    assert FITTED.correct(text) == text


@pytest.mark.parametrize("text", TEXTS[:6])
def test_training_texts_are_never_changed(text: str) -> None:
    assert Spelling().fit(TEXTS).correct(text) == text
    assert FITTED.correct(text) == text


@given(words=st.lists(st.sampled_from(sorted(FITTED.language.words)), max_size=8))
def test_words_of_the_training_texts_are_never_corrected(words: list[str]) -> None:
    text = "  ".join(words)  # two blanks: nothing is joined
    assert FITTED.correct(text) == text


@given(text=st.text(max_size=40))
def test_any_text_can_be_corrected_and_nothing_but_words_changes(text: str) -> None:
    corrected = FITTED.correct(text)
    corrected.encode("utf-8")
    assert "".join(c for c in corrected if not c.isalnum() and c not in " '’@") == "".join(
        c for c in text if not c.isalnum() and c not in " '’@"
    )


def test_most_typos_of_people_are_undone_and_correcting_again_changes_little() -> None:
    texts = [text for text in TEXTS[:6] for _ in range(40)]
    typed = [Typos().apply(text, Random(i)) for i, text in enumerate(texts)]
    corrected = [FITTED.correct(text) for text in typed]
    pairs = [p for t, y, c in zip(texts, typed, corrected, strict=True) for p in _words(t, y, c)]
    wrong = [(word, mended) for word, mistyped, mended in pairs if word != mistyped]
    assert len(wrong) > 300
    assert sum(word == mended for word, mended in wrong) / len(wrong) > 0.8
    assert all(word == mended for word, mistyped, mended in pairs if word == mistyped)


def _words(*texts: str) -> Iterator[tuple[str, ...]]:
    split = [text.split(" ") for text in texts]
    if len({len(words) for words in split}) == 1:
        yield from zip(*split, strict=True)


def test_dictionary_words_are_left_unless_another_is_overwhelmingly_likelier() -> None:
    fitted = Spelling().fit(TEXTS)
    assert fitted.correct("writing is language") == "writing is language"
    assert fitted.correct("a langauge") == "a language"  # a word that is in the dictionary alone
    assert Spelling(dictionary=None).fit(TEXTS).correct("a langauge") == "a langauge"


def test_neighbours_decide_between_equal_candidates() -> None:
    texts = ["he ate his lunch today"] * 20 + ["we had a launch party"] * 20 + ["the hunch paid off"] * 20
    fitted = Spelling(dictionary=None).fit(texts)
    assert fitted.correct("he ate his xunch today") == "he ate his lunch today"
    assert fitted.correct("the xunch paid off") == "the hunch paid off"
    without = Spelling(dictionary=None, context=False).fit(texts)
    assert not without.language.pairs
    assert (
        without.correct("he ate his xunch today").split()[3]
        == without.correct("the xunch paid off").split()[1]
    )


def test_kept_words_and_min_count_decide_what_is_untouchable() -> None:
    rare = [*TEXTS * 20, *["the film"] * 2000, "the flim"]
    assert Spelling(dictionary=None, min_count=1).fit(rare).correct("the flim") == "the flim"
    assert Spelling(dictionary=None, min_count=2).fit(rare).correct("the flim") == "the film"
    assert Spelling(dictionary=None, keep=("Flim",)).fit(rare).correct("the flim") == "the flim"


def test_broken_words_are_joined_but_not_pairs_that_training_texts_have() -> None:
    texts = [*TEXTS * 5, "he went in to town", "look into it", "into the film"]
    fitted = Spelling(dictionary=None).fit(texts)
    assert fitted.correct("he went in to town") == "he went in to town"
    assert fitted.correct("a go od fi lm") == "a good film"
    assert fitted.correct("a go  od film").count(" ") == 4  # two blanks are no break inside a word


def test_the_cache_is_bounded_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tombola.defenses.corrector.CACHE", 5)
    fitted = Spelling(dictionary=None).fit(TEXTS)
    texts = [Typos(share=1).apply(TEXTS[0], Random(i)) for i in range(20)]
    once = [fitted.correct(text) for text in texts]
    assert len(fitted._cache) <= 5
    assert [fitted.correct(text) for text in texts] == once == [FITTED.correct(text) for text in texts]


def test_a_defense_comes_back_from_disk_as_it_was(tmp_path: Path) -> None:
    fitted = fit_defenses([Unicode(), Spelling()], TEXTS)
    fitted.save(tmp_path)
    loaded = load_defense(tmp_path)
    assert loaded.fingerprint == fitted.fingerprint
    assert loaded.parts() == fitted.parts()
    for seed in range(30):
        text = Typos().apply(TEXTS[seed % 6], Random(seed))
        assert loaded.correct(text) == fitted.correct(text)
    assert load_defense(tmp_path).correct("a f\u200bіlm") == "a film"


def test_fingerprints_tell_settings_data_and_dictionaries_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    prints = [
        fit_defenses(settings, texts).fingerprint
        for settings, texts in [
            ([Spelling()], TEXTS),
            ([Spelling(dictionary=None)], TEXTS),
            ([Spelling(min_count=3)], TEXTS),
            ([Unicode(), Spelling()], TEXTS),
            ([Spelling()], TEXTS[:6]),
        ]
    ]
    monkeypatch.setattr(spelling_module, "english", lambda: Dictionary(DICTIONARY.counts, "another"))
    prints.append(fit_defenses([Spelling()], TEXTS).fingerprint)
    assert len(set(prints)) == 6
    assert fit_defenses([Spelling(dictionary=None)], iter(TEXTS)).fingerprint == prints[1]


def test_damaged_or_foreign_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TombolaError, match=r"has no defense\.json"):
        load_defense(tmp_path)
    fit_defenses([Spelling()], TEXTS).save(tmp_path)
    whole = (tmp_path / DEFENSE).read_text()
    (tmp_path / DEFENSE).write_text(whole[:-9])
    with pytest.raises(DamagedArtefact, match="not valid JSON"):
        load_defense(tmp_path)
    (tmp_path / DEFENSE).write_text(whole.replace('"film":', '"flim":'))
    with pytest.raises(DamagedArtefact, match="fingerprint"):
        load_defense(tmp_path)
    (tmp_path / DEFENSE).write_text(json.dumps({**json.loads(whole), "format": 99}))
    with pytest.raises(TombolaError, match="format 99"):
        load_defense(tmp_path)
    (tmp_path / DEFENSE).write_text(whole)
    monkeypatch.setattr(spelling_module, "english", lambda: Dictionary(DICTIONARY.counts, "another"))
    with pytest.raises(TombolaError, match="another version of the English dictionary"):
        load_defense(tmp_path)


@pytest.mark.parametrize(
    "part",
    [
        5,
        {},
        {"settings": "spelling"},
        {"settings": {"kind": ["spelling"]}, "state": {}},
        {"settings": {"kind": "spelling"}, "state": None},
        {"settings": {"kind": "spelling"}, "state": {"words": {}, "pairs": [1], "forms": {}}},
        {"settings": {"kind": "spelling"}, "state": {"words": {"a": "many"}, "pairs": [], "forms": {}}},
        {"settings": {"kind": "unicode"}},
    ],
)
def test_a_file_that_agrees_with_its_fingerprint_can_still_be_nonsense(tmp_path: Path, part: object) -> None:
    content = {"format": 1, "fingerprint": _fingerprint([part]), "defenses": [part]}
    (tmp_path / DEFENSE).write_text(json.dumps(content))
    with pytest.raises(TombolaError):
        load_defense(tmp_path)


class _Recipe(Settings):
    defend: DefenseList = ()


def test_recipes_name_one_defense_or_several() -> None:
    assert checked(_Recipe, {"defend": "spelling"}).defend == (Spelling(),)
    assert checked(_Recipe, {"defend": {"kind": "spelling", "context": False}}).defend == (
        Spelling(context=False),
    )
    both = checked(_Recipe, {"defend": ["unicode", {"kind": "spelling"}]})
    assert both.defend == (Unicode(), Spelling())
    assert _Recipe.model_validate(both.model_dump()) == both
    with pytest.raises(RecipeError, match="Did you mean 'spelling'"):
        checked(_Recipe, {"defend": ["speling"]})


def test_no_defense_changes_nothing() -> None:
    assert Chain([]).correct("a flim") == "a flim"
