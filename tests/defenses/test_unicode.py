"""The unicode defense: disguises are undone, and other languages are left in peace."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tombola.augmentations import Homoglyphs
from tombola.defenses import Unicode

FITTED = Unicode().fit([])


@pytest.mark.parametrize(
    ("disguised", "plain"),
    [
        ("fіlm", "film"),  # a Cyrillic letter
        ("gοοd ΑpPle", "good ApPle"),  # Greek ones
        ("f\u200bil\u00adm\ufeff", "film"),
        ("\ufefffilm", "film"),
        ("ｆｉｌｍ！", "film!"),
        ("𝐟𝐢𝐥𝐦 𝒇ⓘlm", "film film"),
    ],
)
def test_disguises_are_undone(disguised: str, plain: str) -> None:
    assert FITTED.correct(disguised) == plain


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain ASCII text, 100 %",
        "привет мир, это фильм",
        "γειά σου κόσμε",
        "می\u200cخواهم क्\u200dष",  # joiners shape these letters
        "👩\u200d👩\u200d👧 family",
        "cafe\u0301 café naïve ½ x² ﬁ שלום",
        "β-carotene µm 5 Ω",
    ],
)
def test_other_languages_signs_and_emoji_stay(text: str) -> None:
    assert FITTED.correct(text) == text


@given(text=st.text(max_size=50))
def test_correcting_twice_is_correcting_once(text: str) -> None:
    once = FITTED.correct(text)
    assert FITTED.correct(once) == once


def test_the_homoglyph_augmentation_is_undone() -> None:
    text = "the scope of this picture is Only average and Plain"
    kind = Homoglyphs(looks=("cyrillic", "greek", "zero_width"), share=1)
    for seed in range(100):
        assert FITTED.correct(kind.apply(text, Random(seed))) == text


def test_each_part_can_be_switched_off() -> None:
    text = "fіlm f\u200bilm ｆilm"
    assert Unicode(homoglyphs=False).fit([]).correct(text) == "fіlm film film"
    assert Unicode(invisible=False).fit([]).correct(text) == "film f\u200bilm film"
    assert Unicode(compatibility=False).fit([]).correct(text) == "film film ｆilm"
