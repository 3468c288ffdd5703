"""What `make evidence` runs: every recipe beside the evidence, each as the program takes it."""

import shlex

import pytest
from tools.run_evidence import COMMANDS, ROOT, commands, name_of, plan_of, total

from tombola.recipe.checking import check_file

STUDIES = commands(COMMANDS.read_text(encoding="utf-8"))


def test_comments_and_blank_lines_are_no_commands() -> None:
    assert commands("# one\n\nstudy a.yaml seed=[1,2]  # two\n") == [["study", "a.yaml", "seed=[1,2]"]]


def test_every_recipe_of_the_evidence_is_run() -> None:
    recipes = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/evidence/recipes").rglob("*.yaml")}
    assert {words[1] for words in STUDIES} == recipes


def test_no_two_studies_share_a_folder() -> None:
    names = [name_of(words) for words in STUDIES]
    assert len(set(names)) == len(names)


def test_a_dry_run_says_how_long_all_studies_take_together() -> None:
    events = [
        '{"event": "stage"}',
        '{"event": "result", "plan": {"training_steps": 3000, "seconds": 5400.0}}',
    ]
    finished = {"training_steps": 0, "seconds": None}
    sentence = total([plan_of("\n".join(events)), finished])
    assert "3,000 training steps left, about 1.5 h" in sentence


@pytest.mark.parametrize("words", STUDIES, ids=shlex.join)
def test_settings_are_valid(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert words[0] in ("study", "share")
    check_file(words[1], words[2:])
