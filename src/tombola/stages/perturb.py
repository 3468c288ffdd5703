"""Swap a share of a mask's kept and removed units: the control for how exactly the mask must be so."""

from tombola.controls import perturb
from tombola.masks import Mask
from tombola.stages import Job, stage
from tombola.stages.draw import DRAW, describe, read_draw
from tombola.stages.train import MASK


@stage("perturb", version=1)
def run(job: Job) -> None:
    """Perturb the input's mask."""
    mask = perturb(Mask.load(job.inputs["mask"] / MASK), job.settings["share"], job.settings["seed"])
    mask.save(job.folder / MASK)
    job.write_json(DRAW, describe(mask, read_draw(job.inputs["mask"])["parameters"]))
