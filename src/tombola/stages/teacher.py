"""What a fine-tuned model thinks of its training data: the teacher of confidence regularisation. (SRNets, §3)"""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from tombola.evaluation import predict
from tombola.models import load_model, load_tokenizer
from tombola.stages import Job, stage
from tombola.stages.sources import load_split, task_of
from tombola.tasks import collate_of, encode, fitting_length

PROBABILITIES = "teacher.safetensors"


@stage("teacher", version=1)
def run(job: Job) -> None:
    """Write the input model's probabilities for the training data: of plain logits, without dropout."""
    folder, task = job.inputs["model"], task_of(job)
    model, tokenizer = load_model(folder, task, seed=0), load_tokenizer(folder)
    split = load_split(job.ref("data").where)
    done = 0

    def progress(examples: int) -> None:
        nonlocal done
        done += examples
        job.progress(done, len(split))

    logits = predict(
        model,
        encode(split, tokenizer, fitting_length(job.settings["max_length"], model.config)),
        collate_of(task, tokenizer),
        precision=job.settings["precision"],
        progress=progress,
    )
    save_file({"probs": torch.from_numpy(logits).softmax(dim=1)}, job.folder / PROBABILITIES)


def read_teacher(folder: Path) -> torch.Tensor:
    """The probabilities that a teacher stage left, (examples, labels), in the training data's order."""
    return load_file(folder / PROBABILITIES)["probs"]
