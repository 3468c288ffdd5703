"""Score the units of a model and remove the lowest: the stage that makes a mask."""

import json
import logging
from pathlib import Path
from typing import Any

from tombola.masks import Mask, Scores
from tombola.search import searches
from tombola.stages import Job, stage
from tombola.stages.score import SCORES, score
from tombola.stages.sources import pretrained, task_of
from tombola.stages.train import MASK

DRAW = "draw.json"

logger = logging.getLogger(__name__)


@stage("draw", version=1)
def run(job: Job) -> None:
    """Draw the mask. It carries the fingerprint of the pre-trained model, whatever model was scored."""
    search = searches[job.settings["search"]["method"]]
    settings = search.settings(**job.settings["search"])
    within = Mask.load(job.inputs["within"] / MASK) if "within" in job.inputs else None
    origin = pretrained(job, task_of(job), job.settings["seed"])
    scores = (
        Scores.load(job.inputs["scores"] / SCORES) if "scores" in job.inputs else score(job, settings, origin)
    )
    mask = search.choose(settings, scores, job.settings["sparsity"], job.settings["scope"], within)
    for name in emptied(mask):
        logger.warning(
            "the mask removes every weight of %s, so that nothing passes through it: draw fewer, rank inside each "
            "matrix (draw.scope: local)%s",
            name,
            ", leave it out (search.pooler: false) or renew it (pooler: new)" if "pooler" in name else "",
        )
    mask.save(job.folder / MASK)
    job.write_json(DRAW, describe(mask, origin.num_parameters()))


def emptied(mask: Mask) -> list[str]:
    """Matrices of which a mask of single weights leaves nothing. Structured masks may remove a whole layer."""
    if mask.units.granularity != "weight":
        return []
    return [group.name for group in mask.units.groups if not mask.bits[group.name].any()]


def describe(mask: Mask, parameters: int) -> dict[str, Any]:
    """A mask in numbers. Sparsity is that of the prunable weights; `total_sparsity` is of all parameters."""
    return {
        "granularity": mask.units.granularity,
        "base": mask.base.fingerprint,
        "units": mask.count,
        "removed": mask.removed,
        "sparsity": mask.sparsity,
        "weight_sparsity": mask.weight_sparsity,
        "total_sparsity": mask.removed_weights / parameters,
        "weights": mask.units.weights,
        "parameters": parameters,
        "by_layer": {str(layer): share for layer, share in mask.by_layer().items()},
        "by_kind": mask.by_kind(),
    }


def read_draw(folder: Path) -> dict[str, Any]:
    """What a draw removed, in numbers."""
    return json.loads((folder / DRAW).read_text())
