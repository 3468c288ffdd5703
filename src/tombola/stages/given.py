"""Bring masks from outside into the store, combined if there are several."""

import hashlib
from functools import reduce
from operator import and_, or_
from pathlib import Path

from tombola.errors import TombolaError
from tombola.masks import Mask
from tombola.stages import Job, stage
from tombola.stages.draw import DRAW, describe
from tombola.stages.sources import pretrained, task_of
from tombola.stages.train import MASK
from tombola.store import Ref


def mask_ref(source: str) -> Ref:
    """A reference to a mask file, or to the mask in a ticket's folder."""
    path = Path(source).expanduser()
    path = path / MASK if path.is_dir() else path
    if not path.is_file():
        raise TombolaError(f"there is no mask at {path}: name a ticket's folder or a {MASK} file")
    return Ref(hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest(), {"path": str(path)})


@stage("given", version=1)
def run(job: Job) -> None:
    """Load, combine and describe the masks."""
    paths = [ref.where["path"] for name, ref in sorted(job.stage.refs.items()) if name.startswith("mask")]
    masks = [Mask.load(path) for path in paths]
    operation = or_ if job.settings["combine"] == "union" else and_
    mask = reduce(operation, masks)
    origin = pretrained(job, task_of(job), seed=0)
    mask.check(origin)
    mask.save(job.folder / MASK)
    job.write_json(DRAW, describe(mask, origin.num_parameters()))
