"""Attack a trained model on a sample of a data set. A killed attack goes on after its last finished example."""

import hashlib
import json
from pathlib import Path
from typing import Any

from tombola.attacks import Resources
from tombola.attacks.run import attack
from tombola.errors import DataError
from tombola.masks import Mask
from tombola.models import load_model, load_tokenizer
from tombola.stages import Job, stage
from tombola.stages.sources import load_split
from tombola.stages.train import EPOCHS, MASK
from tombola.store import WORK, Ref
from tombola.tasks import Task


def vectors_ref(path: str) -> Ref:
    """A reference to a user's file of word vectors."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataError(f"attack.vectors: there is no file {file}")
    with open(file, "rb") as content:
        return Ref(hashlib.file_digest(content, "blake2b").hexdigest()[:32], {"path": str(file)})


@stage("attack", version=1)
def run(job: Job) -> None:
    """Attack the input's model, or one of its epochs, under a mask if one is given."""
    folder = job.inputs["model"]
    if "epoch" in job.settings:
        folder = folder / EPOCHS / str(job.settings["epoch"])
    model = load_model(folder, Task.named(job.ref("trained").where["task"]), seed=0)
    if "mask" in job.inputs:
        Mask.load(job.inputs["mask"] / MASK).apply(model)
    vectors = job.stage.refs["vectors"].where["path"] if "vectors" in job.stage.refs else None
    work = job.folder / WORK
    work.mkdir(exist_ok=True)
    finished = 0

    def progress(ended: int) -> None:
        nonlocal finished
        finished += ended
        job.progress(finished, job.settings["n"])

    report = attack(
        model,
        load_tokenizer(job.inputs["model"]),
        load_split(job.ref("data").where),
        job.settings["attack"],
        n=job.settings["n"],
        seed=job.settings["seed"],
        query_budget=job.settings.get("query_budget"),
        resources=Resources(vectors=vectors, mlm=job.settings.get("mlm")),
        max_length=job.settings["max_length"],
        precision=job.settings["precision"],
        resume=work / "journal.jsonl",
        progress=progress,
    )
    report.save(job.folder)


def read_attack(folder: Path) -> dict[str, Any]:
    """What an attack came to: its summary."""
    return json.loads((folder / "report.json").read_text())["summary"]
