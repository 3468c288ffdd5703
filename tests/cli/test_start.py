"""Nothing heavy is imported before the first line of a run."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "scipy", "sklearn", "pandas")
SCRIPT = f"""
import sys
from tombola.cli import progress

def write(view, text):
    print(text, [name for name in {HEAVY!r} if name in sys.modules])
    raise SystemExit

progress.Failures.write = write
sys.argv = ["tombola", *sys.argv[1:]]
from tombola.cli import main
main()
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "bert_tickets/quick"],
        ["share", "super_tickets/mtl_quick"],
        ["transfer", "bert_tickets/transfer"],
        ["quickstart"],
        ["compress", "model", "data.csv"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_the_first_line_comes_before_heavy_imports(arguments, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == "planning []\n", done.stderr


def test_a_training_does_not_load_what_the_trainer_imports_for_other_uses():
    unused = ("datasets", "pandas", "scipy.stats")
    script = f"import sys, tombola.training.run; print([name for name in {unused!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
