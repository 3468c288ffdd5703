"""Export a model folder to ONNX, and compare the result with PyTorch on the texts of its task."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tombola.defenses import DEFENSE
from tombola.errors import ModelError, TombolaError
from tombola.foundations.checksums import CHECKSUMS, write_checksums, write_whole
from tombola.models.loading import gives_token_types, load_tokenizer
from tombola.shrink.folders import load_model
from tombola.shrink.onnx import Export, export_onnx
from tombola.shrink.onnx_model import INT8, MODEL
from tombola.tasks import Collate
from tombola.tickets.saved import FORMAT, TASK_FILE, copy_task_file
from tombola.tickets.texts import EXPORTED, recipe_of, texts_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def export_folder(folder: str | Path, path: str | Path, int8: bool = False) -> Export:
    """Export the model of a folder to ONNX, and compare it with PyTorch on its task's texts, if the task is known.

    The file asks for the inputs that the folder's tokenizer gives. The folder's defense, if any, is copied next to the
    file: texts must be corrected by it before inference.

    Args:
        folder: The folder of a ticket, a shrunk ticket or any model.
        path: The `.onnx` file to write; or a folder, which also gets the config, the tokenizer and the task file, so
            that `predict`, `evaluate` and `attack` can open it.
        int8: Also write a dynamically quantised version.
    """
    folder, path = Path(folder), Path(path)
    to_folder = path.suffix != ".onnx"
    if to_folder and any(path.glob("*.safetensors")):
        raise TombolaError(
            f"{path} already contains a model: export to another folder, or to a file: {path / MODEL}"
        )
    file = path / MODEL if to_folder else path
    model, tokenizer = load_model(folder), _tokenizer(folder, needed=to_folder)
    if tokenizer is not None:
        model.config.pad_token_id = Collate(tokenizer).pad_id  # decoders find the last token of a text by it
    token_types = tokenizer is None or gives_token_types(tokenizer)
    export = export_onnx(model, file, int8, texts=texts_of(folder, model.config), token_types=token_types)
    if to_folder:
        _remove_former(path, keep_int8=int8)
    if (folder / DEFENSE).is_file() and folder.resolve() != file.parent.resolve():
        shutil.copyfile(folder / DEFENSE, file.parent / DEFENSE)
    if to_folder and tokenizer is not None:
        model.config.save_pretrained(path)
        saved = tokenizer.save_pretrained(path)
        if (recipe := recipe_of(folder)) is not None:
            write_whole(path / EXPORTED, json.dumps({"format": FORMAT, "recipe": recipe}, indent=1))
            copy_task_file(folder, path)
        names = [file.name for file in (*map(Path, saved), *path.glob("*.onnx*"))]
        write_checksums(path, only=(*names, "config.json", DEFENSE, EXPORTED, TASK_FILE))
    return export


def _tokenizer(folder: Path, needed: bool) -> PreTrainedTokenizerBase | None:
    """Return the folder's tokenizer; None if there is none and the export can do without."""
    try:
        return load_tokenizer(folder)
    except ModelError:
        if needed:
            raise
        return None


def _remove_former(folder: Path, keep_int8: bool) -> None:
    """Remove what belongs to another model that was exported to the folder before."""
    for file in (folder / CHECKSUMS, folder / DEFENSE, folder / EXPORTED, folder / TASK_FILE):
        file.unlink(missing_ok=True)
    for file in () if keep_int8 else folder.glob(f"{INT8}*"):
        file.unlink()
