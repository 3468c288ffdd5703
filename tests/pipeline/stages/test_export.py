"""Exported models: onnxruntime gives PyTorch's outputs, and what a mask removes is cut out of the graph."""

from pathlib import Path

import pytest
import torch

from tests.pipeline.running import execute, plans, workspace
from tests.world import World
from tombola.errors import TombolaError
from tombola.models.loading import load_tokenizer
from tombola.pipeline.stages.export import Export, Exported
from tombola.store.store import Store

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

BRIEF = {"steps": 2, "learning_rate": 1e-3, "batch_size": 16, "max_length": 16}


def test_the_file_gives_the_outputs_of_the_model(world: World, tmp_path: Path) -> None:
    (plan,) = plans(world, train=BRIEF, runtime="onnx")
    (stage,) = [one for one in plan.stages() if isinstance(one, Export)]
    assert stage.label == "export to ONNX"
    store = Store(tmp_path)
    execute([stage], store)
    found = store.read(stage)
    assert isinstance(found, Exported)
    assert found.bytes == sum(file.stat().st_size for file in store.open(stage).glob("model.onnx*"))
    assert found.max_difference < 1e-5
    space, task = workspace(store), stage_task(plan)
    model = plan.model.load(space, task).eval()
    inputs = load_tokenizer(store.open(stage))("a very fine film", return_tensors="pt")
    with torch.no_grad():
        expected = model(**inputs).logits
    torch.testing.assert_close(stage.load(space, task)(**inputs).logits, expected, atol=1e-5, rtol=1e-4)
    with pytest.raises(TombolaError, match="every_epoch"):
        stage.load(space, task, epoch=1)


def stage_task(plan):
    return plan.model.data.definition
