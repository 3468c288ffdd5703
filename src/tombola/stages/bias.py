"""Fit the bias model of a recipe, or take one from a file, and keep its view of the training data. (SRNets, §3)"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from tombola.bias.files import read_log_probs, write
from tombola.bias.fitting import Fit, fit
from tombola.bias.settings import BiasFile, BiasModel, LexicalOverlap
from tombola.errors import DataError
from tombola.evaluation.metrics import accuracy
from tombola.settings import Settings
from tombola.stages import Job, stage
from tombola.stages.sources import load_split, model_ref, unmixed
from tombola.store import Ref
from tombola.tasks import Split
from tombola.tasks.labels import outputs_by_label
from tombola.tasks.synthetic import FORMS
from tombola.tasks.targets import find_target

DESCRIPTION = "bias.json"


def bias_refs(settings: Settings) -> dict[str, Ref]:
    """What a bias stage reads besides the training data: a model's word vectors, or the user's file."""
    match settings:
        case LexicalOverlap(vectors=name):
            return {"vectors": model_ref(name)}
        case BiasFile(path=path):
            file = Path(path).expanduser()
            if not file.is_file():
                raise DataError(f"bias.path: there is no file {file}")
            with open(file, "rb") as content:
                return {
                    "file": Ref(hashlib.file_digest(content, "blake2b").hexdigest()[:32], {"path": str(file)})
                }
    return {}


@stage("bias", version=1)
def run(job: Job) -> None:
    """Write the training data's log-probabilities, and how good the bias model is where it should not be.

    What was mixed into the training data carries no such bias: there, all labels are equally likely.
    """
    where = job.ref("data").where
    own, whole = load_split(unmixed(where)), load_split(where)
    said: dict[str, Any] = dict(job.settings["bias"])
    if "file" in job.stage.refs:
        said["path"] = job.ref("file").where["path"]
    settings = TypeAdapter(BiasModel).validate_python(said)
    others: dict[str, Any] = {}
    if isinstance(settings, BiasFile):
        train = read_log_probs(Path(settings.path), own)
    else:
        vectors = Path(job.ref("vectors").where["folder"]) if "vectors" in job.stage.refs else None
        fitted = fit(settings, own, job.settings["seed"], vectors)
        train, others = fitted.train, _elsewhere(fitted, where)
    labels = own.task.num_labels
    mixed = np.full((len(whole) - len(own), labels), -np.log(labels), dtype=np.float32)
    write(job.folder, np.concatenate([train, mixed]), whole)
    scores = {"train": accuracy(train, np.asarray(own.labels)).as_dict(), **others}
    job.write_json(DESCRIPTION, {"settings": said, "mixed": len(mixed), "accuracy": scores})


def _elsewhere(fitted: Fit, where: Mapping[str, Any]) -> dict[str, Any]:
    """Accuracy on the task's other data. It informs and is no part of the result: data that is not there is said so."""
    task = fitted.task
    forms = ["", *(f"+{form}" for form in FORMS)] if where.get("synthetic_bias") else [""]
    held_out = [f"validation{form}" for form in forms if "validation" in task.split_names()]
    found: dict[str, Any] = {}
    for on in [*held_out, *task.companions.ood]:
        name, split = find_target(on, where["task"])
        place = {**unmixed(where), "task": name, "split": split, "limit": None}
        if on not in held_out:
            place.pop("synthetic_bias", None)
        try:
            found[on] = _accuracy(fitted, load_split(place))
        except DataError as error:
            found[on] = {"missing": str(error)}
    return found


def _accuracy(fitted: Fit, split: Split) -> dict[str, Any]:
    """Where labels are merged their probabilities add up, as overlap's rest was shared out among them."""
    places = outputs_by_label(fitted.task.labels or [], split.task)
    if places is None:
        raise DataError(f"{split.task.name} has other labels than {fitted.task.name}.")
    log_probs = fitted.log_probs(split)
    merged = np.stack([np.logaddexp.reduce(log_probs[:, group], axis=1) for group in places], axis=1)
    return accuracy(merged, np.asarray(split.labels)).as_dict()


def read_bias(folder: Path) -> dict[str, Any]:
    """What a bias stage says of its model: settings, and accuracy on the training and all other data."""
    return json.loads((folder / DESCRIPTION).read_text())
