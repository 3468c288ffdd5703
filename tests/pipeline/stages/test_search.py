"""Learned gates: the scores carry the pre-trained model's fingerprint, and are those of the gates after training."""

from pathlib import Path

from tests.pipeline.running import execute, plans
from tests.world import World
from tombola.masks import Scores, fingerprint
from tombola.models.loading import load_model
from tombola.pipeline.stages.search import SearchStage
from tombola.store.store import Store
from tombola.training.log import TrainLog

TRAIN = {"steps": 4, "learning_rate": 1e-3, "batch_size": 16, "max_length": 16}


def test_the_scores_belong_to_the_pretrained_model(world: World, tmp_path: Path) -> None:
    search = {"method": "learned", "train": {"steps": 3, "learning_rate": 0.05}}
    cells = plans(world, train=TRAIN, search=search, draw={"sparsity": [0.3, 0.6]}, retrain=None)
    stages = {one.key: one for plan in cells for one in plan.stages() if isinstance(one, SearchStage)}
    (stage,) = stages.values()
    assert stage.training_steps() == 3
    store = Store(tmp_path)
    execute([stage], store)
    scores = store.read(stage)
    assert isinstance(scores, Scores)
    model = load_model(world.model, stage.data.definition, seed=1)
    assert scores.units.base == fingerprint(model)
    assert set(scores) == {group.name for group in scores.units.groups}
    log = TrainLog.model_validate_json((store.open(stage) / "log.json").read_bytes())
    assert log.steps == 3


def test_a_longer_search_gives_other_scores(world: World, tmp_path: Path) -> None:
    def scores(steps: int) -> Scores:
        search = {"method": "learned", "train": {"steps": steps, "learning_rate": 0.05}}
        (plan,) = plans(world, train=TRAIN, search=search, retrain=None)
        (stage,) = [one for one in plan.stages() if isinstance(one, SearchStage)]
        execute([stage], Store(tmp_path))
        return Store(tmp_path).read(stage)

    short, long = scores(1), scores(4)
    assert any(not values.equal(long[name]) for name, values in short.items())
