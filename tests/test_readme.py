"""The code of the README runs as it is written, in its order.

Smaller copies stand in for the built-in recipes (fewer examples, one epoch) and for the embedded model (five layers),
by the environment alone: the commands and the Python code are those of the README, letter by letter.
"""

import os
import re
from pathlib import Path

import pytest
import yaml
from transformers import AutoModel, AutoTokenizer

from tests.commands import run, shell
from tombola.foundations.yaml12 import parse_yaml
from tombola.models.finding import EMBEDDED, find_folder
from tombola.recipe.builtin import RECIPES

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(
    r"^```(sh|python|yaml)\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
SMALLER = """
import os
from pathlib import Path

import tombola.recipe.builtin

tombola.recipe.builtin.RECIPES = Path(os.environ["SMALLER_RECIPES"])
"""


def test_the_readme_has_commands_a_recipe_and_python():
    assert [kind for kind, _ in BLOCKS] == ["sh", "sh", "yaml", "python"]
    assert BLOCKS[0][1].startswith("make quickstart")


@pytest.mark.parametrize("code", [code for kind, code in BLOCKS if kind == "python"])
def test_python_in_the_readme_names_what_there_is(code):
    import tombola

    for name in re.findall(r"tombola\.(\w+)", code):
        assert getattr(tombola, name) is not None


@pytest.mark.examples
def test_the_readme_runs_as_it_is_written(tmp_path):
    (recipe,) = (code for kind, code in BLOCKS if kind == "yaml")
    (tmp_path / "my-recipe.yaml").write_text(recipe)
    with shell(tmp_path, smaller(tmp_path)) as environment:
        for kind, code in BLOCKS[1:]:
            if kind == "sh":
                for line in filter(None, code.splitlines()):
                    run(["bash", "-c", line], tmp_path, environment)
            elif kind == "python":
                run(["python", "-c", code], tmp_path, environment)
    for written in ("report.html", "small.onnx", "small.int8.onnx", "quickstart/model/config.json"):
        assert (tmp_path / written).is_file(), written


def smaller(folder, layers=5, examples=32, grids=True):
    """An environment in which built-in recipes take seconds, and the embedded model has fewer layers.

    Without `grids`, only the first sparsity of each is tried.
    """
    fewer_layers(folder / EMBEDDED["minilm"], layers)
    for path in RECIPES.rglob("*.yaml"):
        raw = parse_yaml(path.read_text(encoding="utf-8"))
        raw["data"] = {**(raw.get("data") or {}), "train": examples, "evaluation": examples * 3 // 4}
        draw = raw.get("draw") or {}
        if not grids and isinstance(draw.get("sparsity"), list):
            raw["draw"] = {**draw, "sparsity": draw["sparsity"][0]}
        for part in (raw.get("train"), raw.get("retrain"), (raw.get("search") or {}).get("train")):
            if part and "epochs" in part:
                part["epochs"] = 1
        if (raw.get("search") or {}).get("batches"):
            raw["search"]["batches"] = 2
        if raw.get("attack"):
            raw["attack"]["n"] = 4
        copy = folder / "recipes" / path.relative_to(RECIPES)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(yaml.safe_dump(raw, sort_keys=False))
    (folder / "sitecustomize.py").write_text(SMALLER)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "SMALLER_RECIPES": str(folder / "recipes"),
        "TOMBOLA_STORE": str(folder / "store"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }


def fewer_layers(package, layers):
    """A package like the one that carries the embedded model, with fewer layers."""
    whole = find_folder("minilm")
    model = AutoModel.from_pretrained(whole, num_hidden_layers=layers)
    model.save_pretrained(package / "model")
    AutoTokenizer.from_pretrained(whole).save_pretrained(package / "model")
    (package / "__init__.py").write_text("")
