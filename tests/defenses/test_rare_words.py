"""Words that the training texts hardly have give way to common ones of like meaning, and nothing else changes."""

import pytest

from tests.attacks.toys import neighbours
from tombola.defenses import RareWords, Unicode, fit_defenses, load_defense
from tombola.errors import TombolaError

TEXTS = ["a wonderful film"] * 3 + ["an awful plot", "an awful plot", "a moving plot", "superb"]
NEAR = neighbours(
    {
        "marvellous": {"superb": 0.95, "wonderful": 0.9, "awful": 0.8},
        "dreadful": {"awful": 0.7, "wonderful": 0.2},
        "superb": {"wonderful": 0.9},
        "gripping": {"moving": 0.9},
        "quickly": {"film": 0.9},
        "wonderful": {"awful": 0.9},
        "hardly": {"awful": 0.4},
    }
)


def fitted(**settings):
    return RareWords(min_count=2, **settings).fit(TEXTS, NEAR)


def test_each_rare_word_gets_its_nearest_common_word_of_the_same_part_of_speech() -> None:
    assert fitted().instead == {"marvellous": "wonderful", "dreadful": "awful", "superb": "wonderful"}


def test_a_common_word_stays_and_so_does_a_word_without_a_near_one() -> None:
    text = "A wonderful, gripping film - quickly www.marvellous.com @superb"
    assert fitted().correct(text) == text


def test_the_case_and_everything_between_the_words_stay() -> None:
    text = "MARVELLOUS film ,  Dreadful\nplot: the-superb..."
    assert fitted().correct(text) == "WONDERFUL film ,  Awful\nplot: the-wonderful..."


def test_the_least_cosine_and_the_least_count_decide() -> None:
    assert "dreadful" not in fitted(min_cosine=0.8).instead
    assert RareWords(min_count=1).fit(TEXTS, NEAR).instead["marvellous"] == "superb"
    assert RareWords(min_count=3).fit(TEXTS, NEAR).instead.get("dreadful") is None


def test_it_is_stored_and_read_and_comes_after_others(tmp_path) -> None:
    chain = fit_defenses([Unicode(), RareWords(min_count=2)], TEXTS, lambda defense: NEAR)
    chain.save(tmp_path)
    again = load_defense(tmp_path)
    assert again.correct("a mаrvellous film") == "a wonderful film"  # the first a is Cyrillic
    assert again.fingerprint == chain.fingerprint


def test_without_word_vectors_it_cannot_be_fitted() -> None:
    with pytest.raises(TombolaError, match="rare_words needs word vectors"):
        RareWords().fit(TEXTS)


def test_vectors_of_a_file_decide_the_result(tmp_path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("a 1 0\nb 0 1\n")
    before = RareWords(vectors=str(path)).material
    path.write_text("a 1 0\nb 1 1\n")
    assert before != RareWords(vectors=str(path)).material
    assert RareWords().material is None
