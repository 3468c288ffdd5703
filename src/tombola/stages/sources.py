"""What stages read from outside the store: pre-trained models and data, by reference."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import RecipeError, UnknownName
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


_loaded: ContextVar[dict[tuple[Any, ...], Split] | None] = ContextVar("loaded splits", default=None)


@contextmanager
def reading_once() -> Iterator[None]:
    """Inside, each split is read from its files once, however many cells and stages ask for it."""
    token = _loaded.set({})
    try:
        yield
    finally:
        _loaded.reset(token)


def load_split(where: Mapping[str, Any]) -> Split:
    """The data that a reference points to."""
    loaded, key = _loaded.get(), tuple(where.values())
    if loaded is not None and key in loaded:
        return loaded[key]
    folder = Path(where["folder"]).expanduser() if where["folder"] else None
    split = Task.named(where["task"]).load(
        where["split"], folder=folder, limit=where["limit"], seed=where["seed"]
    )
    if loaded is not None:
        loaded[key] = split
    return split


def find_target(on: str, task: str) -> tuple[str, str]:
    """What "evaluate on …" means, as (task, split): a split of the task, another task, or `task/split` of one."""
    own = Task.named(task)
    if on in own.split_names():
        return task, on
    is_file = on.endswith((".yaml", ".yml"))
    name, slash, split = (on, "", "") if is_file else on.rpartition("/")
    if not slash and not is_file and on not in task_names():
        raise UnknownName("split or task to evaluate on", on, [*own.split_names(), *task_names()])
    other = Task.named(name if slash else on)
    if other.kind != own.kind:
        raise RecipeError(
            f"cannot evaluate on {on!r}: it is a {other.kind} task, and a model for {own.name} has a head for "
            f"{own.kind} alone"
        )
    if slash:
        return name, split
    return on, "validation" if "validation" in other.split_names() else other.split_names()[-1]


def task_of(job: Job) -> Task:
    """The task that this stage's model serves."""
    return Task.named(job.ref("data").where["task"])


def pretrained(job: Job, task: Task, seed: int) -> "PreTrainedModel":
    """The pre-trained model with a new head for the task."""
    return load_model(Path(job.ref("model").where["folder"]), task, seed)


def tokenizer_of(job: Job) -> "PreTrainedTokenizerBase":
    """The pre-trained model's tokenizer."""
    return load_tokenizer(Path(job.ref("model").where["folder"]))
