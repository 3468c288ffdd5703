"""Score the units of a model and remove the lowest: the stage that makes a mask."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tombola.masks import Mask, Units, draw
from tombola.models import load_model
from tombola.search import Evidence, searches
from tombola.stages import Job, stage
from tombola.stages.sources import load_split, pretrained, task_of, tokenizer_of
from tombola.stages.train import MASK
from tombola.tasks import collate_of, encode, fitting_length
from tombola.training.batches import ordered_batches

DRAW = "draw.json"


@stage("draw", version=1)
def run(job: Job) -> None:
    """Draw the mask. It carries the fingerprint of the pre-trained model, whatever model was scored."""
    task, seed = task_of(job), job.settings["seed"]
    search = searches[job.settings["search"]["method"]]
    assert search.scorer is not None
    settings = search.settings(**job.settings["search"])
    within = Mask.load(job.inputs["within"] / MASK) if "within" in job.inputs else None
    origin = pretrained(job, task, seed)
    units = Units.of(origin, settings.units)
    model = load_model(job.inputs["of"], task, seed) if "of" in job.inputs else origin

    def batches(count: int) -> Iterator[dict[str, Any]]:
        tokenizer = tokenizer_of(job)
        length = fitting_length(job.settings.get("max_length", 128), model.config)
        data = encode(load_split(job.ref("data").where), tokenizer, length)
        return ordered_batches(data, collate_of(task, tokenizer, seed), size=32, seed=seed, count=count)

    scores = search.scorer(settings, model, units, Evidence(seed, batches))
    mask = draw(scores, sparsity=job.settings["sparsity"], scope=job.settings["scope"], within=within)
    mask.save(job.folder / MASK)
    job.write_json(DRAW, describe(mask, origin.num_parameters()))


def describe(mask: Mask, parameters: int) -> dict[str, Any]:
    """A mask in numbers. Sparsity is that of the prunable weights; `total_sparsity` is of all parameters."""
    return {
        "granularity": mask.units.granularity,
        "base": mask.base.fingerprint,
        "units": mask.count,
        "removed": mask.removed,
        "sparsity": mask.sparsity,
        "weight_sparsity": mask.weight_sparsity,
        "total_sparsity": mask.weight_sparsity * mask.units.weights / parameters,
        "weights": mask.units.weights,
        "parameters": parameters,
        "by_layer": {str(layer): share for layer, share in mask.by_layer().items()},
        "by_kind": mask.by_kind(),
    }


def read_draw(folder: Path) -> dict[str, Any]:
    """What a draw removed, in numbers."""
    return json.loads((folder / DRAW).read_text())
