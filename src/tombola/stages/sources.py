"""What stages read from outside the store: pre-trained models and data, by reference."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import UnknownName
from tombola.models import find_model, load_model, load_tokenizer
from tombola.stages import Job
from tombola.store import Ref
from tombola.tasks import Split, Task, task_names

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def model_ref(name: str) -> Ref:
    """A reference to a pre-trained model."""
    found = find_model(name)
    return Ref(found.fingerprint, {"name": name, "folder": str(found.folder)})


def data_ref(task: str, split: str, folder: str | None, limit: int | None, seed: int) -> Ref:
    """A reference to a split of a task, or to a random part of it."""
    where = {"task": task, "split": split, "folder": folder, "limit": limit, "seed": seed}
    return Ref(load_split(where).fingerprint, where)


def load_split(where: Any) -> Split:
    """The data that a reference points to."""
    folder = Path(where["folder"]).expanduser() if where["folder"] else None
    return Task.named(where["task"]).load(
        where["split"], folder=folder, limit=where["limit"], seed=where["seed"]
    )


def find_target(on: str, task: str) -> tuple[str, str]:
    """What "evaluate on …" means, as (task, split): a split of the task, another task, or `task/split` of one."""
    own = Task.named(task).split_names()
    if on in own:
        return task, on
    name, slash, split = on.rpartition("/")
    if slash and not on.endswith((".yaml", ".yml")):
        return name, split
    if not on.endswith((".yaml", ".yml")) and on not in task_names():
        raise UnknownName("split or task to evaluate on", on, [*own, *task_names()])
    others = Task.named(on).split_names()
    return on, "validation" if "validation" in others else others[-1]


def task_of(job: Job) -> Task:
    """The task that this stage's model serves."""
    return Task.named(job.ref("data").where["task"])


def pretrained(job: Job, task: Task, seed: int) -> "PreTrainedModel":
    """The pre-trained model with a new head for the task."""
    return load_model(Path(job.ref("model").where["folder"]), task, seed)


def tokenizer_of(job: Job) -> "PreTrainedTokenizerBase":
    """The pre-trained model's tokenizer."""
    return load_tokenizer(Path(job.ref("model").where["folder"]))
