"""What stages read from outside the store: pre-trained models and data, by reference."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import RecipeError
from tombola.models import find_model, load_model, load_tokenizer
from tombola.once import once
from tombola.stages import Job
from tombola.store import Ref
from tombola.tasks import HOLDOUT, Split, Task
from tombola.tasks.mixing import Mixed, mix_in
from tombola.tasks.synthetic import SyntheticBias, biased
from tombola.tasks.targets import find_target

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@once
def model_ref(name: str, pooler: str = "own") -> Ref:
    """A reference to a pre-trained model, with its own pooler or with a new one."""
    found = find_model(name)
    where = {"name": name, "folder": str(found.folder)}
    if pooler == "own":
        return Ref(found.fingerprint, where)
    return Ref(f"{found.fingerprint}+{pooler} pooler", {**where, "pooler": pooler})


@once
def data_ref(
    task: str,
    split: str,
    folder: str | None,
    limit: int | None,
    seed: int,
    synthetic_bias: SyntheticBias | None = None,
    mix: Sequence[Mixed] = (),
    holdout: float | None = None,
) -> Ref:
    """A reference to a split of a task, or to a random part of it; with a bias put in, or other data mixed in."""
    where: dict[str, Any] = {"task": task, "split": split, "folder": folder, "limit": limit, "seed": seed}
    if holdout is not None:
        where["holdout"] = holdout
    if synthetic_bias is not None:
        where["synthetic_bias"] = synthetic_bias.model_dump(mode="json")
    if mix:
        where["mix"] = [one.model_dump(mode="json") for one in mix]
    return Ref(load_split(where).fingerprint, where)


def unmixed(where: Mapping[str, Any]) -> dict[str, Any]:
    """Where the task's own part of the data is, without what was mixed in after it."""
    return {name: value for name, value in where.items() if name != "mix"}


@once
def load_split(where: Mapping[str, Any]) -> Split:
    """The data that a reference points to."""
    folder = Path(where["folder"]).expanduser() if where["folder"] else None
    name, _, form = where["split"].partition("+")
    task = Task.named(where["task"])
    if where.get("holdout"):
        task = task.holding_out(where["holdout"])
    elif name == HOLDOUT and name not in task.split_names():
        raise RecipeError("the split 'holdout' is there under data.holdout alone: set it to a share of train")
    split = task.load(name, folder=folder, limit=where["limit"], seed=where["seed"])
    if where.get("synthetic_bias"):
        split = biased(split, SyntheticBias(**where["synthetic_bias"]), form)
    elif form:
        raise RecipeError(f"the split {where['split']!r} is there under data.synthetic_bias alone: set it")
    for one in map(Mixed.model_validate, where.get("mix", ())):
        source, part = find_target(one.on, where["task"])
        other = Task.named(source).load(part, folder=folder, limit=one.limit, seed=where["seed"])
        split = mix_in(split, other, one.times)
    return split


def task_of(job: Job) -> Task:
    """The task that this stage's model serves."""
    return Task.named(job.ref("data").where["task"])


def pretrained(job: Job, task: Task, seed: int) -> "PreTrainedModel":
    """The pre-trained model with a new head for the task."""
    where = job.ref("model").where
    return load_model(Path(where["folder"]), task, seed, new_pooler=where.get("pooler") == "new")


def tokenizer_of(job: Job) -> "PreTrainedTokenizerBase":
    """The pre-trained model's tokenizer."""
    return load_tokenizer(Path(job.ref("model").where["folder"]))
