"""Prune a whole model in one shot: `prune`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import TombolaError
from tombola.foundations.hardware.machine import check_device
from tombola.foundations.hardware.memory import peak_memory
from tombola.foundations.settings import checked
from tombola.masks.names import Scope
from tombola.masks.pattern_names import parse_pattern
from tombola.models.finding import find_folder
from tombola.pipeline.stages.score import first_examples
from tombola.search import SearchSettings, searches
from tombola.search.calibration import Calibration

if TYPE_CHECKING:
    from tombola.masks import Mask
    from tombola.tasks import Split


EXAMPLES = 128
"""The default number of calibration examples."""


@dataclass(frozen=True)
class Pruning:
    """The result of `prune`.

    Attributes:
        folder: The folder of the pruned model.
        mask: The mask of the weights that are left.
        seconds: The duration of this call.
        peak_memory: The peak resident memory of the process, in bytes.
        model_bytes: The size of the model's tensors on disk.
    """

    folder: Path
    mask: Mask
    seconds: float
    peak_memory: int
    model_bytes: int


def prune(
    model: str | Path,
    task: str,
    output: Path | str,
    *,
    method: str = "wanda",
    sparsity: float | None = None,
    pattern: str | None = None,
    scope: Scope | None = None,
    settings: Mapping[str, Any] | None = None,
    examples: int = EXAMPLES,
    max_length: int = 128,
    data: Path | str | None = None,
    seed: int = 1,
    device: str = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> Pruning:
    """Prune a whole model in one shot, layer by layer, with one layer and the embeddings in memory.

    The matrices of the layers are pruned; embeddings, head and norms stay. The result loads like any transformers
    model. An interrupted call resumes where it stopped.

    Args:
        model: A model folder or hub id.
        task: The task whose training examples calibrate the pruning.
        output: The folder for the pruned model and its mask; new or empty.
        method: `wanda`, `ria`, `sparsegpt` or `magnitude`.
        sparsity: The share of weights to remove from each matrix; by default half of them.
        pattern: `2:4` instead of a sparsity, or blocks such as `16x16`.
        scope: `local` ranks the weights of a matrix, `row` those of each output row; by default as published.
        settings: Further settings of the method, such as `{"damping": 0.02}`.
        examples: The number of training examples to calibrate on; not for `magnitude`, which needs none.
        max_length: Truncate examples to this many tokens.
        data: The root of local data folders.
        seed: The seed that selects the examples.
        device: Where layers run: `cpu`, or an accelerator such as `cuda`.
        progress: Called with the number of layers done and the total.
    """
    from tombola.masks.in_matrices import MatrixSelection
    from tombola.search.one_shot import OneShot, prune_folder
    from tombola.tasks import Task

    started = time.monotonic()
    search = _settings(method, settings, examples)
    folder = find_folder(str(model))
    selection = MatrixSelection(*_selection(search, sparsity, pattern, scope))
    split = Task.named(task).load("train", folder=Path(data) if data is not None else None)
    calibration = getattr(search, "calibration", None)
    order = OneShot(
        settings=search,
        selection=selection,
        batches=lambda: _batches(folder, split, calibration or Calibration(), max_length, seed),
        about={
            "task": split.task.name,
            "data": split.fingerprint if calibration is not None else None,
            "max_length": max_length,
            "seed": seed,
        },
        device=check_device(device),
    )
    if calibration is None and examples != EXAMPLES:
        raise TombolaError(f"examples: {method} needs no examples; leave it out")
    mask = prune_folder(folder, Path(output), order, progress or (lambda done, steps: None))
    size = sum(file.stat().st_size for file in Path(output).glob("model*.safetensors"))
    return Pruning(Path(output), mask, time.monotonic() - started, peak_memory(), size)


def _settings(method: str, settings: Mapping[str, Any] | None, examples: int) -> SearchSettings:
    raw: dict[str, Any] = {"method": method, **(settings or {})}
    kind = searches[method].settings
    given = raw.get("calibration", {})
    if "calibration" in kind.model_fields and isinstance(given, Mapping):
        if "examples" in given and examples != EXAMPLES:
            raise TombolaError("examples: calibration.examples gives their number too; leave one of them out")
        raw["calibration"] = {"examples": examples, **given}
    for name in ("units", "pooler", "classifier", "biases", "task", "start", "start_step", "start_share"):
        if name in raw:
            raise TombolaError(f"{name}: only works in recipes; prune always uses the matrices of all layers")
    return checked(kind, raw, "settings")


def _selection(
    search: SearchSettings, sparsity: float | None, pattern: str | None, scope: Scope | None
) -> tuple[float, Scope, Any]:
    """Return the share of weights to remove from each matrix, the scope and the pattern."""
    try:
        parsed = parse_pattern(pattern) if pattern is not None else None
    except ValueError as error:
        raise TombolaError(f"pattern {error}") from None
    implied = parsed.sparsity if parsed is not None else None
    if implied is not None and sparsity is not None and abs(sparsity - implied) > 1e-9:
        raise TombolaError(
            f"pattern {parsed} removes {implied:.4g} of the weights, not {sparsity:g}: pass only one of them"
        )
    if implied is not None and scope is not None:
        raise TombolaError(f"pattern {parsed} ranks the weights within each group: leave out the scope")
    share = 0.5 if sparsity is None else sparsity
    if not 0 <= share < 1:
        raise TombolaError(f"a sparsity must be between 0 and 1, not {share}")
    usual: Scope = "local" if search.usual_scope == "global" else search.usual_scope
    return share if implied is None else implied, scope or usual, parsed


def _batches(
    folder: Path, split: Split, calibration: Calibration, max_length: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield the calibration batches, in the order of training."""
    from tombola.models.loading import load_tokenizer
    from tombola.models.safety import open_config
    from tombola.tasks import collate_of, encode, fitting_length
    from tombola.training.batches import ordered_batches

    tokenizer = load_tokenizer(folder)
    encoded = encode(split, tokenizer, fitting_length(max_length, open_config(folder)))
    collate = collate_of(split.task, tokenizer, seed)
    batches: Iterable[dict[str, Any]] = ordered_batches(
        encoded, collate, size=calibration.batch_size, seed=seed
    )
    return first_examples(iter(batches), calibration.examples)
