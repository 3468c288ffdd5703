"""Every example runs as it is, on the embedded default."""

import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
SAYS = {
    "attack_any_model": "queries each",
    "combine": "validation+anti",
    "own_attack": "queries each",
    "own_family": "of them removed",
    "own_method": "removed",
    "own_trainer": "5,382,144 weights removed, 5,382,144 are zero after training",
    "selective_trainer": "19 of 48 tensors were frozen in each step",
    "shrink_and_serve": "22,713,986 → 21,827,522 parameters",
    "study": "report: runs/example-study/report.html",
}
pytestmark = pytest.mark.examples


def test_every_example_is_run():
    assert {path.stem for path in EXAMPLES} == set(SAYS)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_says_what_it_promises(path, tmp_path):
    environment = {
        **os.environ,
        "TOMBOLA_STORE": str(tmp_path / "store"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[path.stem] in done.stdout


@pytest.mark.parametrize("name", ["own_attack", "own_family", "own_method"])
def test_an_extension_fits_in_forty_lines(name):
    (path,) = (path for path in EXAMPLES if path.stem == name)
    assert len(path.read_text(encoding="utf-8").splitlines()) < 40


def test_the_study_says_so_if_a_difference_cannot_be_tested(monkeypatch, capsys):
    difference = SimpleNamespace(first={"variant": "dense"}, second={"variant": "imp"}, mean=0.0, t=None)
    study = SimpleNamespace(rows=list, differences=lambda on: [difference])
    monkeypatch.setattr("tombola.study", lambda recipe: study)
    monkeypatch.setattr("tombola.report.write_report", lambda study: "report.html")
    runpy.run_path(str(EXAMPLES[0].parent / "study.py"), run_name="__main__")
    assert "dense minus imp: +0.0%, no test: equal in every seed" in capsys.readouterr().out
