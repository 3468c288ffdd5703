"""Scores during training, the choice of an epoch, and masks drawn from an epoch of the search."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from safetensors.torch import load_file

import tombola
from tests.pipeline.engines.test_ranks import launch
from tests.pipeline.running import execute, plans
from tests.training.test_resume import Killed
from tests.world import World
from tombola.errors import RecipeError
from tombola.pipeline.stages.search import SearchStage
from tombola.pipeline.stages.train import Train
from tombola.pipeline.watching import Watcher
from tombola.recipe.grid import expand
from tombola.recipe.share import check_share
from tombola.report import write_report
from tombola.results.record import CellResult
from tombola.results.result import Result
from tombola.store.store import Store

TRAIN = {"epochs": 4, "learning_rate": 1e-2, "batch_size": 16, "max_length": 16}
CHOOSING = {
    "seed": 2,
    "train": TRAIN,
    "data": {"holdout": 0.2},
    "evaluate": {"on": ["validation", "other"], "every": "epoch", "best": "holdout"},
}


def run(world: World, folder: Path, **changes: Any) -> Result:
    return tombola.run(world.recipe(**changes), output=folder / "out", store=folder / "store", replace=True)


@pytest.fixture(scope="module")
def chosen(world: World, tmp_path_factory: pytest.TempPathFactory) -> tuple[CellResult, Path]:
    folder = tmp_path_factory.mktemp("chosen")
    result = run(world, folder, **CHOOSING, search={"method": "magnitude"})
    write_report(result)
    return result.cells[0], folder


def test_watching_gives_a_curve_and_changes_no_weight(world: World, tmp_path: Path) -> None:
    watched = run(world, tmp_path, seed=3, train=TRAIN, evaluate={"every": "epoch"}).cells[0]
    plain = run(world, tmp_path, seed=3, train=TRAIN).cells[0]
    curve = watched.course["validation"]
    assert [point.epoch for point in curve] == [1, 2, 3, 4]
    assert curve[-1].scores == watched.scores["validation"] == plain.scores["validation"]
    assert len({point.scores["accuracy"].value for point in curve}) > 1
    weights = [
        (tmp_path / "store" / cell.stages.model / "model.safetensors").read_bytes()
        for cell in (watched, plain)
    ]
    assert weights[0] == weights[1]
    assert plain.course == {}
    assert watched.chosen is None


def test_scores_on_the_way_go_through_the_defense(world: World, tmp_path: Path) -> None:
    settings = {
        "train": {**TRAIN, "epochs": 12},
        "defend": [{"kind": "spelling", "dictionary": None}],
        "evaluate": {"on": ["validation+typos"], "every": "epoch"},
    }
    found = run(world, tmp_path, seed=3, **settings).cells[0]
    assert found.scores["validation+typos"]["accuracy"].value > 0.9
    assert found.course["validation+typos"][-1].scores == found.scores["validation+typos"]


def test_every_so_many_steps_and_always_the_last(world: World, tmp_path: Path) -> None:
    train = {**TRAIN, "epochs": 1}  # 12 steps
    curve = run(world, tmp_path, train=train, evaluate={"every": 5}).cells[0].course["validation"]
    assert [point.step for point in curve] == [5, 10, 12]
    assert [point.epoch for point in curve] == pytest.approx([5 / 12, 10 / 12, 1])


def test_the_best_epoch_on_held_out_data_is_kept(chosen: tuple[CellResult, Path]) -> None:
    cell, folder = chosen
    course = json.loads((folder / "store" / cell.stages.model / "course.json").read_text())
    values = [point["choice"]["value"] for point in course["points"]]
    best = values.index(max(values))
    assert cell.chosen is not None
    assert (cell.chosen.on, cell.chosen.epoch) == ("holdout", best + 1)
    assert best + 1 < len(values), "the last epoch is the best one, so nothing is tested"
    for on in ("validation", "other"):
        assert cell.course[on][best].scores == cell.scores[on]
    assert any(cell.course[on][-1].scores != cell.scores[on] for on in cell.course)


def test_a_chosen_ticket_keeps_its_mask(chosen: tuple[CellResult, Path]) -> None:
    cell, folder = chosen
    weights = load_file(folder / "out" / str(cell.ticket) / "model.safetensors")
    removed = (weights["bert.encoder.layer.0.attention.self.query.weight"] == 0).float().mean()
    assert removed > 0.3


def test_the_report_draws_the_course_and_rings_what_was_kept(chosen: tuple[CellResult, Path]) -> None:
    cell, folder = chosen
    page = (folder / "out" / "report.html").read_text()
    content = json.loads(page.split('<script type="application/json" id="content">')[1].split("</script>")[0])
    (section,) = [one for one in content["sections"] if one["title"] == "Scores during training"]
    assert [chart["name"] for chart in section["parts"]] == ["validation", "other"]
    points = section["parts"][0]["series"][0]["points"]
    assert [point["x"] for point in points] == [1, 2, 3, 4]
    assert cell.chosen is not None
    assert [point["x"] for point in points if point["ring"]] == [cell.chosen.epoch]


class KilledLater(Watcher):
    """Ends the process, as it were, after a step of the last training."""

    def progressed(self, stage: Any, step: int, steps: int, figures: Any) -> None:
        if isinstance(stage, Train) and stage.watched and step == steps - 2:
            raise Killed


def test_a_killed_training_goes_on_to_the_same_choice(
    chosen: tuple[CellResult, Path], world: World, tmp_path: Path
) -> None:
    whole, _ = chosen
    changes = {**CHOOSING, "train": {**TRAIN, "checkpoint_minutes": 0}, "search": {"method": "magnitude"}}
    recipe = world.recipe(**changes)
    with pytest.raises(Killed):
        tombola.run(recipe, output=tmp_path / "out", store=tmp_path / "store", watcher=KilledLater())
    cell = tombola.run(recipe, output=tmp_path / "out", store=tmp_path / "store").cells[0]
    assert (cell.course, cell.chosen, cell.scores) == (whole.course, whole.chosen, whole.scores)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"evaluate": {"best": "validation"}}, r"chosen on 'validation', which is also reported"),
        ({"evaluate": {"best": "holdout"}}, r"evaluate\.best: the split 'holdout' exists only with"),
        ({"evaluate": {"best": "nonsense"}}, r"nonsense"),
        ({"evaluate": {"every": 0}}, r"evaluate\.every"),
        (
            {"evaluate": {"every": "epoch"}, "search": {"method": "magnitude"}, "retrain": None},
            r"evaluate\.every: needs a training of the ticket, but retrain is null",
        ),
        (
            {"search": {"method": "learned", "draw_epoch": 3, "train": {"epochs": 2}}},
            r"draw_epoch: 3 is beyond the end of the search, which takes 2 epochs",
        ),
        (
            {"search": {"method": "learned", "draw_epoch": 3, "train": {"steps": 20}}},
            r"draw_epoch: counts epochs, but the training is set in steps",
        ),
    ],
)
def test_what_cannot_be_watched_or_chosen_is_refused(
    world: World, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(RecipeError, match=sentence):
        expand(world.recipe(**changes))


def test_a_shared_training_is_not_watched(world: World) -> None:
    recipe = {"model": str(world.model), "tasks": ["rte", "mrpc"], "evaluate": {"every": "epoch"}}
    with pytest.raises(
        RecipeError, match=r"evaluate\.every, evaluate\.best: only work in the training of a single"
    ):
        check_share(recipe)


def test_a_mask_is_drawn_from_the_epoch_of_the_search_that_is_named(world: World, tmp_path: Path) -> None:
    """The search is the same up to there: its schedule is that of all epochs."""
    store, logs, scores = Store(tmp_path), [], []
    for epoch in (2, 4, None):
        search = {"method": "learned", "train": {"epochs": 4, "batch_size": 16}, "draw_epoch": epoch}
        found = plans(world, search=search, train={**TRAIN, "epochs": 1})[0].stages()
        (stage,) = [one for one in found if isinstance(one, SearchStage)]
        execute([stage], store)
        logs.append(json.loads((store.open(stage) / "log.json").read_text()))
        scores.append((store.open(stage) / "scores.safetensors").read_bytes())
        assert stage.training_steps() == logs[-1]["steps"]
    assert [log["steps"] for log in logs] == [24, 48, 48]
    assert logs[0]["curve"] == logs[1]["curve"][: len(logs[0]["curve"])]
    assert scores[0] != scores[1] == scores[2]


@pytest.mark.thorough
def test_two_processes_count_the_epochs_of_both_and_keep_one_model(world: World, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    train = {**TRAIN, "batch_size": 8, "epochs": 3}  # of two processes together as large as of one
    recipe.write_text(yaml.safe_dump(world.recipe(**{**CHOOSING, "train": train})))
    done = launch(recipe, tmp_path / "out", tmp_path / "store")
    assert done.returncode == 0, done.stderr
    (cell,) = Result.load(tmp_path / "out").cells
    assert [point.epoch for point in cell.course["validation"]] == [1, 2, 3]
    assert cell.chosen is not None
    kept = next(point for point in cell.course["validation"] if point.step == cell.chosen.step)
    assert kept.scores == cell.scores["validation"]
