"""How large and how fast the result is once it is shipped, beside the dense model that it was drawn from."""

import json
from pathlib import Path
from typing import Any

from tombola.masks import Mask
from tombola.models import open_model
from tombola.shrink.inputs import longest_input
from tombola.shrink.measuring import Sizes, measure
from tombola.shrink.packing import pack
from tombola.shrink.shrinking import STRUCTURED, shrink
from tombola.stages import Job, stage
from tombola.stages.train import MASK
from tombola.store import WORK

MEASURED = "measured.json"


@stage("measure", version=1)
def run(job: Job) -> None:
    """Shrink a structured ticket and time it in turns with the dense model; pack an unstructured one.

    A model under a mask of single weights is as fast as the dense model, and said to be.
    """
    model = open_model(job.inputs["model"])
    options = {
        "batch_sizes": job.settings["batch_sizes"],
        "length": min(job.settings["length"], longest_input(model.config)),
    }
    mask = Mask.load(job.inputs["mask"] / MASK) if "mask" in job.inputs else None
    if mask is None:
        (dense,) = measure(model, **options)
        ticket = dense
    elif set(mask.units.granularity.split("+")) <= STRUCTURED:
        mask.apply(model)
        dense, ticket = measure(model, shrink(model, mask), **options)
    else:
        mask.apply(model)
        (dense,) = measure(model, **options)
        ticket = dense.model_copy(update={"bytes": _packed(model, mask, job.folder / WORK)})
    job.write_json(MEASURED, {"dense": _dump(dense), "ticket": _dump(ticket)})


def read_measured(folder: Path) -> dict[str, Any]:
    """The sizes of a result (`ticket`) and of the dense model."""
    return json.loads((folder / MEASURED).read_text())


def _packed(model: Any, mask: Mask, folder: Path) -> int:
    folder.mkdir(exist_ok=True)
    path = folder / "packed.safetensors"
    pack(model, mask, path)
    return path.stat().st_size


def _dump(sizes: Sizes) -> dict[str, Any]:
    return sizes.model_dump(mode="json")
