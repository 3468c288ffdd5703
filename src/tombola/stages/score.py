"""Score the units of a model once, for every ticket that is drawn from the scores."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tombola.masks import Scores
from tombola.models import load_model
from tombola.search import Evidence, SearchSettings, searches
from tombola.stages import Job, stage
from tombola.stages.sources import load_split, pretrained, task_of, tokenizer_of
from tombola.tasks import collate_of, encode, fitting_length
from tombola.training.batches import ordered_batches

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SCORES = "scores.safetensors"


@stage("score", version=1)
def run(job: Job) -> None:
    """Keep the scores of all units."""
    settings = searches[job.settings["search"]["method"]].settings(**job.settings["search"])
    origin = pretrained(job, task_of(job), job.settings["seed"])
    score(job, settings, origin).save(job.folder / SCORES)


def score(job: Job, settings: SearchSettings, origin: "PreTrainedModel") -> Scores:
    """What the search's scorer thinks of each unit of the model that it starts from."""
    task, seed = task_of(job), job.settings["seed"]
    units = settings.units_of(origin)
    model = load_model(job.inputs["of"], task, seed) if "of" in job.inputs else origin

    def batches(count: int | None) -> Iterator[dict[str, Any]]:
        tokenizer = tokenizer_of(job)
        length = fitting_length(job.settings.get("max_length", 128), model.config)
        data = encode(load_split(job.ref("data").where), tokenizer, length)
        collate = collate_of(task, tokenizer, seed)
        if model.config.pad_token_id is None:
            model.config.pad_token_id = collate.pad_id
        return ordered_batches(data, collate, size=32, seed=seed, count=count)

    scorer = searches[settings.method].scorer
    assert scorer is not None
    return scorer(settings, model, units, Evidence(seed, batches))
