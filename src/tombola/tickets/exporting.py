"""What `tombola export` does with a folder: write its model as ONNX, compared on the texts of its own task."""

import shutil
from pathlib import Path

from tombola.defenses import DEFENSE
from tombola.shrink.folders import load_model
from tombola.shrink.onnx import Export, export_onnx
from tombola.tickets.texts import texts_of


def export_folder(folder: str | Path, path: str | Path, int8: bool = False) -> Export:
    """Write the model of a folder as ONNX, and compare it with PyTorch on its task's texts, if it knows its task.

    A defense of the folder is copied beside the file: whoever serves the model corrects texts by it first.

    Args:
        folder: The folder of a ticket, a shrunk ticket or any model.
        path: The file to write.
        int8: Whether to write a dynamically quantised version too.
    """
    folder = Path(folder)
    model = load_model(folder)
    export = export_onnx(model, path, int8, texts=texts_of(folder, model.config))
    if (folder / DEFENSE).is_file():
        shutil.copyfile(folder / DEFENSE, Path(path).parent / DEFENSE)
    return export
