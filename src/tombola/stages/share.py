"""Train several tasks on one encoder, each under its own mask or all without; score one task of the result."""

from tombola.masks import Mask, Units, fingerprint
from tombola.models import load_tokenizer
from tombola.sharing.batches import MixedCollate
from tombola.sharing.model import SharedModel, open_task, save_shared, task_folder
from tombola.sharing.recipe import Sampling
from tombola.sharing.training import train_shared
from tombola.stages import Job, stage
from tombola.stages.draw import DRAW, describe
from tombola.stages.evaluate import judge
from tombola.stages.sources import load_split, pretrained, tokenizer_of
from tombola.stages.train import MASK
from tombola.store import WORK
from tombola.tasks import Task, encode, fitting_length
from tombola.training import TrainSettings


@stage("share", version=1)
def run(job: Job) -> None:
    """Train, and leave the encoder's folder with every task's head and mask in it."""
    count, seed, tokenizer = job.settings["tasks"], job.settings["seed"], tokenizer_of(job)
    places = [job.ref(f"data{index}").where for index in range(count)]
    tasks = [Task.named(where["task"]) for where in places]
    settings = TrainSettings(**{**job.settings["train"], **job.stage.unhashed})
    model = SharedModel([pretrained(job, task, seed) for task in tasks])
    masks = _masks(job, model) if "units" in job.settings else None
    length = fitting_length(settings.max_length, model.config)
    log = train_shared(
        model,
        [encode(load_split(where), tokenizer, length) for where in places],
        settings,
        collate=MixedCollate(tasks, tokenizer),
        seed=seed,
        precision=job.settings["precision"],
        folder=job.folder / WORK,
        sampling=Sampling(**job.settings["sampling"]),
        masks=masks,
        progress=lambda step, steps, figures: job.progress(step, steps),
    )
    names = [task.name for task in tasks]
    save_shared(model, names, tokenizer, job.folder, masks)
    for name, one, mask in zip(names, model.models, masks or (), strict=masks is not None):
        place = task_folder(job.folder, name).relative_to(job.folder)
        numbers = {**describe(mask, one.num_parameters()), "remaining": 1 - mask.parameter_sparsity}
        job.write_json(str(place / DRAW), numbers)
    job.write_json("log.json", log.model_dump(mode="json"))


def _masks(job: Job, model: SharedModel) -> list[Mask]:
    """Every task's mask; a task that no mask was drawn for keeps everything."""
    classifier = model.models[0]
    base = fingerprint(classifier)
    full = Mask.full(Units.of(classifier, job.settings["units"], base))
    masks = [
        Mask.load(job.inputs[f"mask{index}"] / MASK) if f"mask{index}" in job.inputs else full
        for index in range(job.settings["tasks"])
    ]
    for mask in masks:
        mask.check(classifier, base=base)
    return masks


@stage("evaluate_shared", version=1)
def evaluate(job: Job) -> None:
    """Evaluate one task of a shared model, under the task's mask if it has one."""
    folder = job.inputs["model"]
    judge(job, open_task(folder, job.settings["task"]), load_tokenizer(folder))
