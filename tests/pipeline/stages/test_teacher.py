"""The teacher of confidence regularisation: the fine-tuned model's probabilities, in the data's order."""

from pathlib import Path

import torch

from tests.pipeline.running import execute, plans, workspace
from tests.world import World
from tombola.models.loading import load_tokenizer
from tombola.pipeline.stages.teacher import Teacher
from tombola.store.store import Store

BRIEF = {"steps": 4, "learning_rate": 3e-3, "batch_size": 16, "max_length": 16}


def test_the_probabilities_are_the_models_own(world: World, tmp_path: Path) -> None:
    train = {**BRIEF, "loss": {"kind": "confidence"}}
    (plan,) = plans(world, train=train, bias={"method": "shallow"})
    (stage,) = [one for one in plan.stages() if isinstance(one, Teacher)]
    store = Store(tmp_path)
    execute([stage], store)
    found = store.read(stage)
    split = stage.data.load()
    assert found.shape == (len(split), 2)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(len(split)))
    model = stage.model.load(workspace(store), stage.data.definition).eval()
    tokenizer = load_tokenizer(store.open(stage.model))
    for number in (0, 1, len(split) - 1):
        inputs = tokenizer(split.texts[number][0], return_tensors="pt")
        with torch.no_grad():
            expected = model(**inputs).logits.softmax(dim=1)[0]
        torch.testing.assert_close(found[number], expected, atol=1e-5, rtol=1e-4)
