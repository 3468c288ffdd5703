"""Import masks that the papers' published code wrote."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from tombola.errors import DataError, RecipeError, UnknownName
from tombola.foundations.paths import replacing
from tombola.models.finding import find_folder

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.masks import Mask

logger = logging.getLogger(__name__)

MaskFormat = Literal["bert_tickets", "srnets", "super_tickets"]


def import_mask(
    source: str | Path | Sequence[str | Path],
    model: str,
    kind: MaskFormat,
    output: str | Path,
    *,
    task: str | None = None,
    threshold: float | None = None,
    keep_head: bool = True,
    entry: str | None = None,
    first: int = 0,
) -> Mask:
    """Convert a mask that a paper's published code wrote, for use with `search: {method: given}`.

    No code in the files is run: tensors are loaded as plain tensors only, lists as JSON or text.

    Args:
        source: A `mask.pt`, or a folder with one or with a file per matrix (`bert_tickets`, `srnets`); or a list of
            removed heads and one of removed FFNs, as files or in a folder (`super_tickets`).
        model: The pre-trained model that the mask belongs to: a built-in name, a folder or a hub id.
        kind: The code that wrote the mask: bert_tickets, srnets or super_tickets.
        output: The folder for the mask.
        task: The task whose head is masked too.
        threshold: If the files hold scores, keep those above this.
        keep_head: Whether to import the mask of the task head.
        entry: In files of several tasks, the key of the one to import.
        first: The number of the first layer and head in lists: 0, or 1 in some programs.
    """
    if kind not in get_args(MaskFormat):
        raise UnknownName("mask format", kind, get_args(MaskFormat))
    sources = [Path(path).expanduser() for path in _listed(source)]
    if missing := [path for path in sources if not path.exists()]:
        raise DataError(f"there is no file or folder {missing[0]}.")
    structured = kind == "super_tickets"
    if structured and (task is not None or threshold is not None):
        raise RecipeError(
            "lists of heads and FFNs have neither a head nor scores: leave out the task and the threshold"
        )
    if not structured and (len(sources) > 1 or entry is not None or first):
        raise RecipeError("several sources, --entry and --first only work for lists of heads and FFNs")
    mask = (
        _from_lists(sources, _open(model, None), entry, first)
        if structured
        else _from_tensors(sources[0], _open(model, task), threshold, keep_head)
    )
    from tombola.masks import MASK

    with replacing(Path(output).expanduser(), MASK) as folder:
        mask.save(folder / MASK, imported=kind)
    logger.info("%r from %s", mask, ", ".join(map(str, sources)))
    return mask


def _listed(source: str | Path | Sequence[str | Path]) -> Sequence[str | Path]:
    return [source] if isinstance(source, str | Path) else source


def _open(name: str, task: str | None) -> PreTrainedModel:
    """Open the pre-trained model, with a head for the task if one is given."""
    from transformers import AutoModel

    from tombola.foundations.quiet import quiet
    from tombola.models.loading import load_model
    from tombola.models.safety import open_pretrained
    from tombola.tasks import Task

    folder = find_folder(name)
    if task is not None:
        return load_model(folder, Task.named(task), seed=0)
    with quiet():
        model: PreTrainedModel = open_pretrained(AutoModel, folder)
        return model


def _from_tensors(source: Path, model: PreTrainedModel, threshold: float | None, keep_head: bool) -> Mask:
    from tombola.masks.importing import mask_from_tensors
    from tombola.masks.tensor_files import read_tensors

    return mask_from_tensors(model, read_tensors(source), threshold=threshold, keep_head=keep_head)


def _from_lists(sources: Sequence[Path], model: PreTrainedModel, entry: str | None, first: int) -> Mask:
    from tombola.masks import Units
    from tombola.masks.unit_lists import Heads, mask_from_lists, read_ffns, read_heads

    files = [file for source in sources for file in _lists_in(source)]
    heads: Heads = {}
    ffns: set[int] = set()
    kinds = {"head" if "head" in file.name.lower() else "ffn": file for file in files}
    if len(kinds) < len(files):
        raise DataError(f"{', '.join(map(str, files))}: pass at most one list of heads and one of FFNs.")
    if "head" in kinds:
        heads = read_heads(kinds["head"], entry, first)
    if "ffn" in kinds:
        ffns = read_ffns(kinds["ffn"], entry, first)
    return mask_from_lists(Units.of(model, "+".join(sorted(kinds, reverse=True))), heads, ffns)


def _lists_in(source: Path) -> list[Path]:
    """Return the lists of heads and FFNs in a folder, or the file itself if its name tells which list it is."""
    candidates = sorted(source.iterdir()) if source.is_dir() else [source]
    lists = [
        path
        for path in candidates
        if path.suffix in (".json", ".txt") and any(word in path.name.lower() for word in ("head", "ffn"))
    ]
    if not lists:
        raise DataError(f"{source}: expected heads_to_mask.json, ffn_to_mask.json, or such lists as .txt.")
    return lists
