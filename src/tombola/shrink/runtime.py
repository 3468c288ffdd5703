"""onnxruntime sessions with as many threads as torch, tried in a child process first.

A processor may advertise instructions that kill the process, and onnxruntime uses all that are advertised.
"""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tombola.errors import TombolaError
from tombola.foundations.hardware.child import run_child
from tombola.shrink.texts import Batch

TRIAL = [sys.executable, "-P", str(Path(__file__).with_name("onnx_trial.py"))]
"""The command of the child process; path, shapes and `--threads` are appended. Tests replace it."""

PATIENCE = 600.0  # seconds until a trial counts as hung: it loads the model and runs a few batches


def try_session(
    path: Path,
    shapes: Sequence[tuple[int, int]],
    what: str,
    remedy: str,
    outcome: str = ", so nothing was written",
) -> None:
    """Run a model in a child process, at the shapes (batch, length) that this process will use.

    Args:
        path: The ONNX model.
        shapes: Batch and length of each trial.
        what: The model's name in the error message.
        remedy: Advice for the error message.
        outcome: The consequence of a failure, which follows the reason in the message.

    Raises:
        TombolaError: If the child process fails.
    """
    sizes = [f"{batch}x{length}" for batch, length in shapes]
    command = [*TRIAL, str(path), *sizes, "--threads", str(torch.get_num_threads())]
    trial = run_child(command, PATIENCE)
    if trial.code == 0:
        return
    if trial.killed_by:
        reason = f"{trial.killed_by} killed it"
    elif trial.timed_out:
        reason = f"it did not finish within {PATIENCE:.0f} s"
    else:
        reason = trial.not_started or str(trial.report().get("error", f"exit code {trial.code}"))
    raise TombolaError(
        f"onnxruntime cannot run the {what} model on this machine ({reason}){outcome}: {remedy}."
    )


def open_session(path: Path) -> Any:
    """Open a session for a model that passed `try_session`."""
    trial = import_module("tombola.shrink.onnx_trial")
    return trial.open_session(str(path), torch.get_num_threads())


def run_session(session: Any, inputs: Batch) -> dict[str, Tensor]:
    """Run the session and return its outputs by name."""
    names = [output.name for output in session.get_outputs()]
    values = session.run(names, _feed(session, inputs))
    return {name: torch.from_numpy(value) for name, value in zip(names, values, strict=True)}


def session_pass(session: Any) -> Callable[[Batch], object]:
    """Return a function that runs the session on a batch, for timing."""
    return lambda batch: session.run(None, _feed(session, batch))


def _feed(session: Any, inputs: Batch) -> dict[str, Any]:
    """Return the graph's inputs as arrays. Missing token types are zero, as in transformers."""
    absent = torch.zeros_like(inputs["input_ids"])
    return {node.name: inputs.get(node.name, absent).numpy() for node in session.get_inputs()}
