"""A tokenizer behind a defense: it corrects what it reads, and saves and opens with it."""

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from tests.words import word_tokenizer
from tombola.defenses import DEFENSE, Spelling, Unicode, fit_defenses
from tombola.defenses.tokenizing import defended, defense_of, undefended
from tombola.errors import TombolaError
from tombola.models.loading import load_tokenizer

TEXTS = ["the film is a wonderful story", "a terrible plot with a boring scene"] * 4
DEFENSE_OF_TEXTS = fit_defenses([Unicode(), Spelling(dictionary=None)], TEXTS)


def tokenizer() -> Any:
    return word_tokenizer(TEXTS)


def test_every_call_is_corrected_texts_pairs_and_lists() -> None:
    plain, behind = tokenizer(), defended(tokenizer(), DEFENSE_OF_TEXTS)
    wrong, right = "a wonderfull sttory", "a wonderful story"
    assert plain(wrong)["input_ids"] != plain(right)["input_ids"]
    assert behind(wrong) == plain(right)
    assert behind(wrong, "the fi\u200blm") == plain(right, "the film")
    assert behind([wrong, "the film"], [right, wrong]) == plain([right, "the film"], [right, right])
    assert behind([(wrong, "the film"), [right, wrong]]) == plain([(right, "the film"), [right, right]])
    assert behind(wrong, truncation=True, max_length=3) == plain(right, truncation=True, max_length=3)
    with pytest.raises(TombolaError, match="split into words"):
        behind([["a", "film"]], is_split_into_words=True)


def test_it_saves_as_its_own_class_with_the_defense_beside_it(tmp_path: Path) -> None:
    behind = defended(tokenizer(), DEFENSE_OF_TEXTS)
    assert type(behind).__name__ == type(tokenizer()).__name__
    behind.save_pretrained(tmp_path / "behind")
    tokenizer().save_pretrained(tmp_path / "plain")
    assert (tmp_path / "behind" / DEFENSE).is_file()
    for file in (tmp_path / "plain").iterdir():
        assert (tmp_path / "behind" / file.name).read_bytes() == file.read_bytes()
    opened = load_tokenizer(tmp_path / "behind")
    assert defense_of(opened).fingerprint == DEFENSE_OF_TEXTS.fingerprint
    assert opened("a sttory") == opened("a story")
    without = AutoTokenizer.from_pretrained(tmp_path / "behind")
    assert defense_of(without) is None
    assert without("a sttory") != without("a story")


def test_a_second_defense_takes_the_place_of_the_first() -> None:
    behind = defended(tokenizer(), DEFENSE_OF_TEXTS)
    again = defended(behind, fit_defenses([Unicode()], TEXTS))
    assert undefended(again) is type(tokenizer())
    assert again("a sttory") == tokenizer()("a sttory")
    assert again("a sto\u200bry") == tokenizer()("a story")
