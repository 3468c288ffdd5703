"""Learn the scores of gates on the task: the stage that masks are drawn from at any sparsity."""

from tombola.gates import Gating
from tombola.masks import fingerprint
from tombola.search import searches
from tombola.search.learned import Learned
from tombola.stages import Job, stage
from tombola.stages.score import SCORES
from tombola.stages.sources import pretrained, task_of, tokenizer_of
from tombola.stages.train import prepare, training_data
from tombola.store import WORK
from tombola.tasks import collate_of
from tombola.training import TrainSettings
from tombola.training.gated import train_gates


@stage("search", version=1)
def run(job: Job) -> None:
    """Train the gates, and leave their scores with the fingerprint of the pre-trained model."""
    task, seed = task_of(job), job.settings["seed"]
    settings = searches[job.settings["search"]["method"]].settings(**job.settings["search"])
    assert isinstance(settings, Learned)
    training = TrainSettings(**{**job.settings["train"], **job.stage.unhashed})
    model = prepare(job)
    gating = Gating(
        settings.units_of(model, fingerprint(pretrained(job, task, seed))),
        model,
        settings.gate,
        settings.held,
        seed=seed,
        sparsity=job.settings.get("sparsity", 0.0),
        scope=job.settings.get("scope", "global"),
    )
    log = train_gates(
        model,
        training_data(job, training, model),
        training,
        gating,
        collate=collate_of(task, tokenizer_of(job), seed),
        seed=seed,
        precision=job.settings["precision"],
        folder=job.folder / WORK,
        progress=lambda step, steps, figures: job.progress(step, steps),
    )
    gating.learned().save(job.folder / SCORES)
    job.write_json("log.json", log.model_dump(mode="json"))
