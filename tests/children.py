"""Processes of their own that need not import torch and Transformers again.

Importing them takes longer than what most children of a test do. So a server imports them once, and forks. A child has
no module of this package before it asks for one; where that it asks for torch is the point, take `subprocess`.
"""

import multiprocessing
import os
import sys
import tempfile
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.commands import run_program

_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(["tests.preloaded"])
ROOT = Path(__file__).parent.parent


def start_python(*arguments: str | Path, output: Path | None = None) -> BaseProcess:
    """Begin what `python ARGUMENTS` does, in the project's folder.

    Args:
        arguments: `-m MODULE …` or `-c CODE …`.
        output: The file for what it prints; nowhere, if not given.
    """
    words = [str(argument) for argument in arguments]
    child = _server.Process(target=_child, args=(words, dict(os.environ), output), daemon=True)
    child.start()
    return child


def run_python(*arguments: str | Path) -> str:
    """What `python ARGUMENTS` prints; it has to succeed."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        child = start_python(*arguments, output=output)
        child.join()
        printed, said = (path.read_text() for path in (output, _errors(output)))
    assert child.exitcode == 0, f"{arguments}\n{printed}\n{said}"
    return printed


def _child(arguments: list[str], environment: dict[str, str], output: Path | None) -> None:
    for number, path in enumerate((output, output and _errors(output)), start=1):
        os.dup2(os.open(path or os.devnull, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, str(ROOT))
    os._exit(run_program("python", arguments))


def _errors(output: Path) -> Path:
    return output.with_suffix(".errors")
