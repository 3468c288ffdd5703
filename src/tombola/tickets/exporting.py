"""Export a model folder to ONNX, and compare the result with PyTorch on the texts of its task."""

import json
import shutil
from pathlib import Path

from tombola.defenses import DEFENSE
from tombola.errors import TombolaError
from tombola.foundations.checksums import CHECKSUMS, write_checksums, write_whole
from tombola.models.loading import load_tokenizer
from tombola.shrink.folders import load_model
from tombola.shrink.onnx import Export, export_onnx
from tombola.shrink.onnx_model import INT8, MODEL
from tombola.tickets.saved import FORMAT
from tombola.tickets.texts import EXPORTED, recipe_of, texts_of


def export_folder(folder: str | Path, path: str | Path, int8: bool = False) -> Export:
    """Export the model of a folder to ONNX, and compare it with PyTorch on its task's texts, if the task is known.

    The folder's defense, if any, is copied next to the file: texts must be corrected by it before inference.

    Args:
        folder: The folder of a ticket, a shrunk ticket or any model.
        path: The `.onnx` file to write; or a folder, which also gets the config and the tokenizer, so that `predict`,
            `evaluate` and `attack` can open it.
        int8: Also write a dynamically quantised version.
    """
    folder, path = Path(folder), Path(path)
    whole = path.suffix != ".onnx"
    if whole and any(path.glob("*.safetensors")):
        raise TombolaError(
            f"{path} already contains a model: export to another folder, or to a file: {path / MODEL}"
        )
    file = path / MODEL if whole else path
    model = load_model(folder)
    export = export_onnx(model, file, int8, texts=texts_of(folder, model.config))
    if whole:
        _remove_former(path, keep_int8=int8)
    if (folder / DEFENSE).is_file() and folder.resolve() != file.parent.resolve():
        shutil.copyfile(folder / DEFENSE, file.parent / DEFENSE)
    if whole:
        model.config.save_pretrained(path)
        saved = load_tokenizer(folder).save_pretrained(path)
        if (recipe := recipe_of(folder)) is not None:
            write_whole(path / EXPORTED, json.dumps({"format": FORMAT, "recipe": recipe}, indent=1))
        names = [file.name for file in (*map(Path, saved), *path.glob("*.onnx*"))]
        write_checksums(path, only=(*names, "config.json", DEFENSE, EXPORTED))
    return export


def _remove_former(folder: Path, keep_int8: bool) -> None:
    """Remove what belongs to another model that was exported to the folder before."""
    for file in (folder / CHECKSUMS, folder / DEFENSE, folder / EXPORTED):
        file.unlink(missing_ok=True)
    for file in () if keep_int8 else folder.glob(f"{INT8}*"):
        file.unlink()
