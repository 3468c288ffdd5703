"""What there is to name, and whether files name it rightly."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.world import World
from tombola.errors import RecipeError, UnknownName
from tombola.recipe.builtin import recipe_names
from tombola.recipe.catalogue import KINDS, catalogue, summary
from tombola.recipe.checking import check_file

EVIDENCE = Path(__file__).parents[2] / "docs" / "evidence" / "recipes"


def test_every_kind_is_listed_with_a_line_for_each_entry() -> None:
    found = catalogue()
    assert tuple(found) == KINDS
    for kind, rows in found.items():
        assert rows, kind
        for name, line in rows:
            assert line, f"{kind} {name}"
            assert "\n" not in line
    assert [kind for kind, _ in summary()] == list(KINDS)
    with pytest.raises(UnknownName, match="Did you mean 'tasks'"):
        catalogue("task")


def test_a_word_finds_entries_of_all_kinds() -> None:
    found = catalogue(search="OVERLAP")
    assert set(found) == {"tasks", "bias models"}
    assert [name for name, _ in found["tasks"]] == ["hans"]
    assert catalogue("attacks", search="nothing of the kind") == {}


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_of_the_package_is_valid(name: str) -> None:
    assert check_file(name).startswith("a valid recipe")


@pytest.mark.parametrize(
    "path", sorted(EVIDENCE.rglob("*.yaml")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_every_recipe_of_the_evidence_is_valid(path: Path) -> None:
    assert check_file(str(path)).startswith("a valid recipe")
    assert not any("evidence" in name for name in recipe_names())


def test_a_study_is_checked_with_all_of_its_recipes(world: World, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(json.dumps(world.recipe(seed=[1, 2])))
    study = {"recipes": ["one.yaml", world.recipe(name="two")], "grid": {"train.epochs": [1, 2]}}
    (tmp_path / "study.yaml").write_text(json.dumps(study))
    assert check_file(str(tmp_path / "study.yaml")) == "a valid study of 2 recipes, 6 cells"
    with pytest.raises(RecipeError) as caught:
        check_file(str(tmp_path / "study.yaml"), ["train.epoch=1"])
    assert caught.value.mistakes == (
        "recipes.one: train: unknown key 'epoch'. Did you mean 'epochs'?",
        "recipes.two: train: unknown key 'epoch'. Did you mean 'epochs'?",
    )


def test_a_recipe_for_sharing_is_checked_for_each_of_its_tasks() -> None:
    assert check_file("super_tickets/mtl_quick") == "a valid recipe for sharing, 4 tasks"
    with pytest.raises(RecipeError) as caught:
        check_file("super_tickets/mtl_quick", ["train.epoch=1", "sparsity=2", "search={method: importence}"])
    assert caught.value.mistakes == (
        "train: unknown key 'epoch'. Did you mean 'epochs'?",
        "sparsity: must be less than 1, not 2",
    )
    with pytest.raises(RecipeError, match="search: unknown search method 'importence'"):
        check_file("super_tickets/mtl_quick", ["search={method: importence}"])


def test_data_is_described(world: World, tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    content = yaml.safe_load(world.task.read_text())
    rows = (world.task.parent / "train.tsv").read_text().splitlines()
    (tmp_path / "train.tsv").write_text(
        "\n".join([*rows, "a lovely film is very very very very bright\tpositive"])
    )
    (tmp_path / "validation.tsv").write_text(
        "\n".join([rows[0], rows[1], "Fine.\tpositive", "fine\tpositive"])
    )
    content["source"] = {"files": {"train": "train.tsv", "validation": "validation.tsv", "gone": "gone.tsv"}}
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(content))
    raw = world.recipe(task=str(tmp_path / "task.yaml"), train={"max_length": 8})
    recipe.write_text(json.dumps(raw))
    sentence, train, validation = check_file(str(recipe), data=True).splitlines()
    assert sentence == "a valid recipe, 1 cell in 1 variant"
    assert train.startswith("tiny/train: 193 rows (negative ")
    assert f"1 is longer than 8 tokens of {world.model} and truncated (95% fit in 7)" in train
    assert validation.startswith("tiny/validation: 3 rows (")
    assert "1 is a duplicate; 1 also occurs in tiny/train; none is longer than 8 tokens" in validation
    with pytest.raises(RecipeError, match="no file for tiny/gone"):
        check_file(str(recipe), ["evaluate.on=[gone]"], data=True)
    with pytest.raises(RecipeError, match=r"train\.report_to: 'nobody' is not installed"):
        check_file(str(recipe), ["train.report_to=[nobody]"], data=True)


def test_a_recipe_is_checked_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from tombola.recipe.catalogue import catalogue; "
        "from tombola.recipe.checking import check_file; check_file('srnets/quick'); "
        "check_file('robust_tickets/quick'); catalogue(); "
        "print([name for name in ('torch', 'transformers', 'sklearn', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
