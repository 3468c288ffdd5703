"""The code of the README runs as it is written, in its order.

Smaller copies stand in for the built-in recipes (fewer examples, one epoch) and for the embedded model (three layers),
by the environment alone: the commands and the Python code are those of the README, letter by letter.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from transformers import AutoModel, AutoTokenizer

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
    environment = smaller(tmp_path)
    (recipe,) = (code for kind, code in BLOCKS if kind == "yaml")
    (tmp_path / "my-recipe.yaml").write_text(recipe)
    for kind, code in BLOCKS[1:]:
        if kind == "sh":
            for line in filter(None, code.splitlines()):
                run(["bash", "-c", line], tmp_path, environment)
        elif kind == "python":
            run([sys.executable, "-c", code], tmp_path, environment)
    for written in ("report.html", "small.onnx", "small.int8.onnx", "quickstart/model/config.json"):
        assert (tmp_path / written).is_file(), written


def run(words, folder, environment):
    import time

    t = time.time()
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    print(round(time.time() - t, 1), words[-1][:60], flush=True)
    assert done.returncode == 0, f"{words[-1]}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def smaller(folder):
    """An environment with `tombola` on its path, in which built-in recipes take seconds."""
    fewer_layers(folder / EMBEDDED["minilm"])
    for path in RECIPES.rglob("*.yaml"):
        raw = parse_yaml(path.read_text(encoding="utf-8"))
        raw["data"] = {**(raw.get("data") or {}), "train": 32, "evaluation": 24}
        for part in (raw.get("train"), raw.get("retrain"), (raw.get("search") or {}).get("train")):
            if part and "epochs" in part:
                part["epochs"] = 1
        if raw.get("attack"):
            raw["attack"]["n"] = 8
        copy = folder / "recipes" / path.relative_to(RECIPES)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(yaml.safe_dump(raw, sort_keys=False))
    (folder / "sitecustomize.py").write_text(SMALLER)
    command = folder / "bin" / "tombola"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tombola "$@"\n')
    command.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "SMALLER_RECIPES": str(folder / "recipes"),
        "TOMBOLA_STORE": str(folder / "store"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }


def fewer_layers(package):
    """A package like the one that carries the embedded model, with half of its layers."""
    whole = find_folder("minilm")
    model = AutoModel.from_pretrained(whole, num_hidden_layers=3)
    model.save_pretrained(package / "model")
    AutoTokenizer.from_pretrained(whole).save_pretrained(package / "model")
    (package / "__init__.py").write_text("")
