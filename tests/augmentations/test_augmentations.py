"""Augmentations: equal seeds give equal bytes, shares are kept, nothing but words is touched."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tombola.attacks.neighbours import bundled_words
from tombola.augmentations import (
    Augmentation,
    Augmenter,
    AugmentSettings,
    Casing,
    Homoglyphs,
    Punctuation,
    Resources,
    SynonymSwaps,
    Typos,
    Whitespace,
    augmentations,
)
from tombola.errors import RecipeError, TombolaError
from tombola.foundations.settings import checked
from tombola.words.keyboard import NEIGHBOURS

TEXT = "the plot of this wonderful film never surprises, but its actors carry every single scene with charm ."
NOTHING_TO_CHANGE = "1999 [MASK] <s> https://x.org/film me@film.org 3.5"


class Pairs:
    """A lexicon of pairs: film and movie, good and fine; films is a form of film."""

    table = {
        "film": ["movie"],
        "movie": ["film"],
        "films": ["movie"],
        "good": ["fine", "well"],
        "fine": ["good"],
    }

    def synonyms(self, word: str) -> Sequence[str]:
        return self.table.get(word, [])

    def same_part_of_speech(self, word: str, other: str) -> bool:
        return other != "well"

    def is_stop_word(self, word: str) -> bool:
        return word == "the"


RESOURCES = Resources(Pairs())
NONE = [
    Typos(share=0),
    SynonymSwaps(share=0),
    Casing(share=0),
    Punctuation(drop=0, insert=0),
    Whitespace(share=0),
    Homoglyphs(share=0),
]
PINNED = (
    "the plot of this wonderful filkm nee surprrises, but its axtors czrry every single scene with charm ."
)
ANY_KIND = st.sampled_from([kind() for _, kind in augmentations.items()])
ANY_TEXT = st.text(max_size=60) | st.sampled_from(
    [TEXT, "", "e\u0301", "👩‍👩‍👧 שלום عليكم", "ﬁ ß İ", "a", "A B"]
)


def test_every_kind_is_registered_under_its_kind() -> None:
    assert {name: kind().kind for name, kind in augmentations.items()} == {
        name: name for name in augmentations
    }
    assert set(augmentations) == {"typos", "synonyms", "casing", "punctuation", "whitespace", "homoglyphs"}


@given(kind=ANY_KIND, text=ANY_TEXT, seed=st.integers())
def test_equal_seeds_give_equal_texts_that_can_be_encoded(kind: Augmentation, text: str, seed: int) -> None:
    changed = kind.apply(text, Random(seed), RESOURCES)
    assert changed == kind.apply(text, Random(seed), RESOURCES)
    changed.encode("utf-8")


@given(text=ANY_TEXT, seed=st.integers())
@pytest.mark.parametrize("kind", NONE, ids=lambda kind: kind.kind)
def test_a_share_of_zero_changes_nothing(kind: Augmentation, text: str, seed: int) -> None:
    assert kind.apply(text, Random(seed), RESOURCES) == text


@pytest.mark.parametrize("kind", [Typos(share=1), SynonymSwaps(share=1), Casing(), Homoglyphs(share=1)])
def test_numbers_addresses_and_special_tokens_stay(kind: Augmentation) -> None:
    assert all(
        kind.apply(NOTHING_TO_CHANGE, Random(seed), RESOURCES) == NOTHING_TO_CHANGE for seed in range(50)
    )


@pytest.mark.parametrize("share", [0.1, 0.3, 0.7])
def test_typos_hit_the_share_of_the_words(share: float) -> None:
    words = TEXT.split()
    hit = sum(
        sum(a != b for a, b in zip(words, Typos(share=share).apply(TEXT, Random(s)).split(), strict=True))
        for s in range(400)
    )
    plain = sum(word.strip(",").isalpha() for word in words)
    assert hit / (400 * plain) == pytest.approx(share, abs=0.01)


def test_typos_are_distributed_as_people_make_them() -> None:
    """Of single errors in one long word: substitutions by neighbours lead, and the first letter is hardly hit."""
    word, kinds = "background", Counter[str]()
    for seed in range(4000):
        typed = Typos(share=1, max_edits=1).apply(word, Random(seed))
        kinds["first"] += typed[0] != word[0]
        if len(typed) == len(word):
            places = [i for i in range(len(word)) if typed[i] != word[i]]
            kinds["swap" if len(places) == 2 else "substitute"] += 1
            kinds["neighbour"] += len(places) == 1 and typed[places[0]] in NEIGHBOURS[word[places[0]]]
        else:
            kinds["omit" if len(typed) < len(word) else "insert"] += 1
    shares = {kind: count / 4000 for kind, count in kinds.items()}
    assert shares["substitute"] > shares["omit"] > shares["insert"] > shares["swap"] > 0.05
    assert shares["substitute"] == pytest.approx(0.48, abs=0.03)
    assert shares["neighbour"] > 0.9 * shares["substitute"]
    assert shares["first"] < 0.05


def test_short_words_are_rarely_mistyped_and_single_letters_never() -> None:
    changed = Counter[str]()
    for seed in range(1000):
        typed = Typos(share=0.25).apply("a of plot", Random(seed)).split(" ")
        changed.update(w for w, t in zip(["a", "of", "plot"], typed, strict=True) if w != t)
    assert changed["a"] == 0
    assert changed["plot"] > 3 * changed["of"] > 0


def test_synonyms_keep_case_and_skip_forms_that_the_lexicon_does_not_list() -> None:
    swap = SynonymSwaps(share=1)
    assert swap.apply("the film FILM films good", Random(0), RESOURCES) == "the movie MOVIE films fine"
    assert (
        swap.apply("Film by Film", Random(0), RESOURCES) == "Movie by Film"
    )  # inside a text it may be a name


class Near:
    """A table of neighbours: film is near cinema and well, good is near nice; a stop word has one too."""

    table = {"film": ["well", "cinema", "movie"], "good": ["nice"], "the": ["an"], "acting": ["actor"]}

    def of(self, word: str, k: int, at_least: float = -1.0) -> list[str]:
        return self.table.get(word, [])[:k] if at_least <= 0.7 else []


def test_neighbours_are_taken_by_part_of_speech_and_cosine() -> None:
    def all_of(**settings: object) -> set[str]:
        swap = SynonymSwaps(share=1, **settings)  # type: ignore[arg-type]
        return {swap.apply("the film", Random(seed), resources) for seed in range(50)}

    resources = Resources(Pairs(), Near)
    assert all_of(source="neighbours") == {"the cinema", "the movie"}
    assert all_of(source="neighbours", nearest=1) == {"the cinema"}
    assert all_of(source="neighbours", min_cosine=0.8) == {"the film"}
    assert all_of(source="both", nearest=1) == {"the movie", "the cinema"}
    assert all_of() == {"the movie"}


@pytest.mark.parametrize("source", ["neighbours", "both"])
def test_neighbours_that_were_not_given_are_refused_before_training(source: str) -> None:
    with pytest.raises(TombolaError, match="needs word neighbours"):
        Augmenter(AugmentSettings(of=({"kind": "synonyms", "source": source},)), RESOURCES)


def test_the_bundled_neighbours_make_another_text_of_the_same_length() -> None:
    swap = SynonymSwaps(source="neighbours", share=1, nearest=10)
    changed = swap.apply(TEXT, Random(0), bundled_words()).split()
    assert len(changed) == len(TEXT.split())
    assert sum(one != other for one, other in zip(changed, TEXT.split(), strict=True)) >= 5


def test_synonyms_without_a_lexicon_are_refused_before_training() -> None:
    with pytest.raises(TombolaError, match="needs a lexicon"):
        Augmenter(AugmentSettings(of=("synonyms",)))


def test_surface_changes_leave_the_words_as_they_are() -> None:
    plain = [word for word in TEXT.split() if word != "."]
    for seed in range(50):
        assert Casing().apply(TEXT, Random(seed)).lower() == TEXT
        tight = Whitespace(edits=("double", "tab", "tighten"), share=1).apply(TEXT, Random(seed))
        assert "".join(tight.split()) == "".join(TEXT.split())
        marked = Punctuation(drop=0.5, insert=0.5).apply(TEXT, Random(seed))
        assert [w.strip(".,;:!?") for w in marked.split() if w.strip(".,;:!?")] == [
            w.strip(",") for w in plain
        ]
    assert Whitespace(edits=("split",), share=1).apply("good", Random(0)).replace(" ", "") == "good"
    assert Punctuation(drop=1, insert=0).apply("it costs 3.5, or so.", Random(0)) == "it costs 3.5 or so"


def test_homoglyphs_change_one_letter_and_no_more_than_they_may() -> None:
    for seed in range(200):
        cyrillic = Homoglyphs(looks=("cyrillic",), share=1).apply("scope", Random(seed))
        assert sum(a != b for a, b in zip(cyrillic, "scope", strict=True)) == 1
        hidden = Homoglyphs(looks=("zero_width",), share=1, max_edits=3).apply("scope", Random(seed))
        assert hidden.replace("\u200b", "") == "scope"
        assert 1 <= len(hidden) - 5 <= 3


@given(
    texts=st.lists(ANY_TEXT, min_size=1, max_size=2),
    ids=st.lists(st.text(max_size=5), min_size=2, max_size=6, unique=True),
    step=st.integers(0, 10**6),
)
def test_order_and_earlier_examples_do_not_matter(texts: list[str], ids: list[str], step: int) -> None:
    settings = AugmentSettings(of=("typos", "casing"), share=0.7, combine="all")
    first, second = Augmenter(settings, run_seed=3), Augmenter(settings, run_seed=3)
    forwards = {identity: first.texts(tuple(texts), identity, step) for identity in ids}
    backwards = {identity: second.texts(tuple(texts), identity, step) for identity in reversed(ids)}
    assert forwards == backwards
    assert all(len(changed) == len(texts) for changed in forwards.values())


def test_the_share_of_examples_is_kept_and_seeds_steps_ids_and_sides_differ() -> None:
    settings = AugmentSettings(of=(Typos(),), share=0.5)
    augmenter = Augmenter(settings)
    changed = sum(augmenter.texts((TEXT,), str(i), 0) != (TEXT,) for i in range(1000))
    assert changed / 1000 == pytest.approx(0.5, abs=0.05)
    every = Augmenter(AugmentSettings(of=(Typos(),), share=1))
    left, right = every.texts((TEXT, TEXT), "x", 0)
    others = [
        every.texts((TEXT,), "x", 1)[0],
        every.texts((TEXT,), "y", 0)[0],
        Augmenter(AugmentSettings(of=(Typos(),), share=1, seed=1)).texts((TEXT,), "x", 0)[0],
        Augmenter(AugmentSettings(of=(Typos(),), share=1), run_seed=1).texts((TEXT,), "x", 0)[0],
    ]
    assert len({left, right, *others}) == 6
    assert every.texts((TEXT,), "x", 0) == (left,)
    assert every.texts((TEXT, TEXT), "x", 0, sides={0}) == (left, TEXT)


def test_the_bytes_of_a_known_seed_do_not_change() -> None:
    """A resumed training of another version must see the same texts."""
    augmenter = Augmenter(AugmentSettings(of=("typos",), share=1, seed=7), run_seed=1)
    assert augmenter.texts((TEXT,), "train-12", 340) == (PINNED,)


def test_recipes_name_kinds_or_give_settings_and_mistakes_are_explained() -> None:
    settings = checked(AugmentSettings, {"of": ["casing", {"kind": "typos", "share": 0.1}]}, "augment")
    assert settings.of == (Casing(), Typos(share=0.1))
    assert AugmentSettings.model_validate(settings.model_dump()) == settings
    assert settings.model_dump()["of"][1] == {"kind": "typos", "share": 0.1, "max_edits": 2}
    with pytest.raises(RecipeError, match="Did you mean 'typos'"):
        checked(AugmentSettings, {"of": ["typo"]}, "augment")
    with pytest.raises(RecipeError, match="less than or equal to 1"):
        checked(AugmentSettings, {"of": [{"kind": "typos", "share": 2}]}, "augment")
