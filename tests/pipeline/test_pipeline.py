"""From a recipe to finished stages: what is shared, what is exact, what survives a kill."""

import hashlib
import json
import pickle
import shutil
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import tombola
from tests.children import run_python, start_python
from tests.pipeline.running import execute, plans, stages, workspace
from tombola.api import plan_run
from tombola.errors import MaskMismatch, RecipeError, TombolaError
from tombola.masks import Mask, Scores, Units, draw, fingerprint
from tombola.masks.drawing import random_scores
from tombola.models.controls import Reinitialise, apply_control
from tombola.models.finding import find_model
from tombola.models.loading import load_model
from tombola.pipeline.engines.ray import _attempt
from tombola.pipeline.planner import plan_cell
from tombola.pipeline.stages.train import prepare
from tombola.recipe.grid import expand
from tombola.store.store import Store
from tombola.tasks import Task

pytestmark = pytest.mark.portable

IMP = {"method": "iterative", "step": 0.25}


@pytest.fixture(scope="module")
def finished(world, tmp_path_factory):
    """A store in which IMP at 50 % has been run."""
    store = Store(tmp_path_factory.mktemp("store"))
    (one,) = plans(world, search=IMP, draw={"sparsity": 0.5})
    execute(one.ends(), store)
    return one, store


def test_imp_at_a_lower_sparsity_is_a_prefix_of_imp_at_a_higher_one(world):
    short = {stage.key for stage in stages(world, search=IMP, draw={"sparsity": 0.25})}
    long = {stage.key for stage in stages(world, search=IMP, draw={"sparsity": 0.75})}
    dense = {stage.key for stage in stages(world)}
    assert (
        len(long - short) == 5
    )  # two more rounds of train and draw, less the ticket that round 2 trains, + evaluate
    (only,) = dense - long
    assert only == plans(world)[0].evaluations["validation"].key  # the dense model is trained for IMP anyway


def test_a_retrained_ticket_is_the_training_of_the_next_round(world):
    (quarter,) = plans(world, search=IMP, draw={"sparsity": 0.25})
    half = stages(world, search=IMP, draw={"sparsity": 0.5})
    assert quarter.model.key in {stage.key for stage in half}


def test_what_does_not_change_the_result_does_not_change_the_key(world):
    (one,) = plans(world)
    (same,) = plans(world, about="other words", train={**world.recipe()["train"], "checkpoint_minutes": 1})
    (other,) = plans(world, train={**world.recipe()["train"], "weight_decay": 0.1})
    assert one.model.key == same.model.key != other.model.key


def test_a_new_pooler_is_trained_rewound_and_ranked_like_the_encoder(world, tmp_path):
    (one,) = plans(world, pooler="new", search=IMP, draw={"sparsity": 0.25})
    (own,) = plans(world, search=IMP, draw={"sparsity": 0.25})
    assert not {stage.key for stage in one.stages()} & {stage.key for stage in own.stages()}
    store = Store(tmp_path)
    execute(one.ends(), store)
    start = load_model(find_model(str(world.model)).folder, Task.named(str(world.task)), 1, new_pooler=True)
    rewound, mask = prepare(one.model, workspace(store)), Mask.load(store.open(one.mask) / "mask.safetensors")
    kept = mask["pooler.dense"]
    pooler, first = (model.base_model.get_parameter("pooler.dense.weight") for model in (rewound, start))
    assert pooler[kept].equal(first[kept])
    assert not pooler[~kept].any()


def test_changed_data_changes_the_key(world, tmp_path):
    (one,) = plans(world)
    copy = tmp_path / "task.yaml"
    copy.write_text(world.task.read_text())
    for split in ("train", "validation", "other"):
        (tmp_path / f"{split}.tsv").write_text(world.task.with_name(f"{split}.tsv").read_text())
    (moved,) = plans(world, task=str(copy))
    assert moved.model.key == one.model.key
    with open(tmp_path / "train.tsv", "a") as file:
        file.write("the film was fine\tpositive\n")
    (changed,) = plans(world, task=str(copy))
    assert changed.model.key != one.model.key


@pytest.mark.parametrize("changed", ["train.tsv", "model/vocab.txt", "mask.safetensors"])
def test_what_changes_between_planning_and_running_is_not_stored_under_the_old_key(world, tmp_path, changed):
    copy = shutil.copytree(world.task.parent, tmp_path / "world")
    shutil.copyfile(world.model / "config.json", copy / "model" / "vocab.txt")  # a file of any content
    model = load_model(copy / "model", Task.from_file(copy / "task.yaml"), seed=0)
    draw(random_scores(Units.of(model, "weight"), 0), 0.5).save(copy / "mask.safetensors")
    given = {"method": "given", "masks": [str(copy / "mask.safetensors")]}
    (one,) = plans(world, model=str(copy / "model"), task=str(copy / "task.yaml"), search=given)
    store = Store(tmp_path / "store")
    first = one.mask if changed.startswith("mask") else one.model
    with open(copy / changed, "a") as file:
        file.write("the film was fine\tpositive\n")
    with pytest.raises(
        TombolaError, match=rf"{Path(changed).parts[0]}.* has changed since the run was planned"
    ):
        execute([first], store)
    assert not store.has(one.model)


def test_masks_of_imp_are_nested_and_exact(finished):
    one, store = finished
    final = Mask.load(store.open(one.mask) / "mask.safetensors")
    first = Mask.load(store.open(one.mask.within) / "mask.safetensors")
    assert first.removed == first.count // 4
    assert final.removed == final.count // 2
    assert first.contains(final)


def test_imp_removes_the_smallest_of_the_trained_weights_that_were_left(finished):
    one, store = finished
    final = Mask.load(store.open(one.mask) / "mask.safetensors")
    before = Mask.load(store.open(one.mask.within) / "mask.safetensors")
    trained = load_file(store.open(one.mask.of) / "model.safetensors")
    left, gone = [], []
    for name, kept in final.items():
        weights = trained[f"bert.{name}.weight"].abs()
        left.append(weights[kept])
        gone.append(weights[before.bools(name) & ~kept])
    assert torch.cat(gone).max() <= torch.cat(left).min()


def test_after_a_rewind_every_kept_encoder_weight_is_the_pretrained_one_bit_for_bit(world, finished):
    one, store = finished
    rewound = prepare(one.model, workspace(store))
    original = load_model(find_model(str(world.model)).folder, Task.named(str(world.task)), seed=1)
    mask = Mask.load(store.open(one.mask) / "mask.safetensors")
    kept = mask.tensors(rewound)
    for name, tensor in rewound.base_model.state_dict().items():
        pretrained = original.base_model.state_dict()[name]
        expected = pretrained * kept[name] if name in kept else pretrained
        assert torch.equal(tensor, expected), name
    for name, tensor in rewound.state_dict().items():
        if not name.startswith("bert."):
            assert torch.equal(tensor, original.state_dict()[name]), name


def test_training_moves_what_is_kept_and_nothing_that_is_removed(finished):
    one, store = finished
    folder = store.open(one.model)
    weights, mask = load_file(folder / "model.safetensors"), Mask.load(folder / "mask.safetensors")
    for name, kept in mask.items():
        tensor = weights[f"bert.{name}.weight"]
        assert (tensor[~kept] == 0).all()
        assert (tensor[kept] != 0).all()


def test_late_rewinding_goes_back_to_the_step_and_not_to_the_start(world, tmp_path):
    store = Store(tmp_path)
    (one,) = plans(world, search={**IMP, "rewind_step": 3}, draw={"sparsity": 0.5})
    execute(one.ends(), store)
    second = one.mask.of
    point = second.start
    assert point.stop_at == 3
    assert json.loads((store.open(point) / "log.json").read_text())["steps"] == 3
    rewound = prepare(second, workspace(store)).state_dict()
    checkpoint = load_file(store.open(point) / "model.safetensors")
    mask = Mask.load(store.open(one.mask.within) / "mask.safetensors")
    for name, kept in mask.items():
        assert torch.equal(rewound[f"bert.{name}.weight"], checkpoint[f"bert.{name}.weight"] * kept)
    assert torch.equal(rewound["classifier.weight"], checkpoint["classifier.weight"])
    final = prepare(one.model, workspace(store)).state_dict()
    kept = Mask.load(store.open(one.mask) / "mask.safetensors")
    for name, bits in kept.items():
        assert torch.equal(final[f"bert.{name}.weight"], checkpoint[f"bert.{name}.weight"] * bits)
    assert torch.equal(final["classifier.weight"], checkpoint["classifier.weight"])


def test_a_carried_head_is_the_last_rounds_and_a_fresh_one_is_new(world, tmp_path):
    store = Store(tmp_path)
    (one,) = plans(world, search={**IMP, "head": "carried"}, draw={"sparsity": 0.5})
    execute([one.mask], store)
    second = one.mask.of
    trained = load_file(store.open(second.head) / "model.safetensors")
    assert torch.equal(prepare(second, workspace(store)).classifier.weight, trained["classifier.weight"])
    execute([one.model.head], store)
    last = load_file(store.open(one.mask.of) / "model.safetensors")
    assert torch.equal(prepare(one.model, workspace(store)).classifier.weight, last["classifier.weight"])


def test_without_rewinding_a_round_goes_on_from_the_trained_weights(world, tmp_path):
    store = Store(tmp_path)
    (one,) = plans(world, search={**IMP, "rewind": False}, draw={"sparsity": 0.5})
    execute([one.mask], store)
    second = one.mask.of
    trained = load_file(store.open(second.start) / "model.safetensors")
    assert torch.equal(prepare(second, workspace(store)).classifier.weight, trained["classifier.weight"])
    last, final = load_file(store.open(second) / "model.safetensors"), prepare(one.model, workspace(store))
    for name, bits in Mask.load(store.open(one.mask) / "mask.safetensors").items():
        assert torch.equal(final.state_dict()[f"bert.{name}.weight"], last[f"bert.{name}.weight"] * bits)


def test_retraining_may_start_elsewhere_than_the_search_rewinds_to(world):
    def start(where, **search):
        retrain = {"start": where} if where else {}
        (one,) = plans(world, search={**IMP, **search}, draw={"sparsity": 0.5}, retrain=retrain)
        return one.model.start, one.mask.of

    assert start("pretrained", rewind_step=3)[0] is None
    found, last = start("last_round")
    assert found.key == last.key
    found, _ = start("finetuned")
    assert found.key == plans(world)[0].model.key


def test_imp_without_retraining_keeps_the_weights_of_its_last_round(world, tmp_path):
    store = Store(tmp_path)
    (one,) = plans(world, search=IMP, draw={"sparsity": 0.5}, retrain=None)
    assert one.model.key == one.mask.of.key
    execute(one.ends(), store)
    weights = load_file(store.open(one.model) / "model.safetensors")
    mask = Mask.load(store.open(one.mask.within) / "mask.safetensors")
    assert all((weights[f"bert.{name}.weight"][~kept] == 0).all() for name, kept in mask.items())


@pytest.mark.parametrize(
    ("schedule", "step", "target", "expected"),
    [
        ("linear", 0.1, 0.9, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
        ("linear", 0.1, 0.25, [0.1, 0.2, 0.25]),
        ("geometric", 0.2, 0.5, [0.2, 0.36, 0.488, 0.5]),
        ("linear", 0.5, 0.3, [0.3]),
    ],
)
def test_rounds(schedule, step, target, expected):
    from tombola.search.iterative import rounds

    assert rounds(target, step, schedule) == pytest.approx(expected)


def test_a_mask_without_retraining_is_applied_when_it_is_evaluated(world, tmp_path):
    store = Store(tmp_path)
    search = {"method": "magnitude", "start": "finetuned"}
    one, most = plans(world, search=search, retrain=None, draw={"sparsity": [0.1, 0.99]})
    assert one.model.key == plans(world)[0].model.key
    execute([*one.ends(), *most.ends()], store)
    scores = [
        load_file(store.open(p.evaluations["validation"]) / "predictions.safetensors")["predictions"]
        for p in (one, most)
    ]
    assert not torch.equal(*scores)


def test_run_gives_scores_tickets_and_the_same_again_for_nothing(world, tmp_path):
    arguments = {"output": tmp_path / "out", "store": tmp_path / "store"}
    recipe = world.recipe(
        seed=[1, 2], search={"method": "magnitude"}, evaluate={"on": ["validation", "other"]}
    )
    first = tombola.run(recipe, **arguments)
    again = tombola.run(recipe, **arguments)
    assert first.record.stages.run_now == first.record.stages.all == 2 * 4
    assert again.record.stages.run_now == 0
    assert again.cells == first.cells
    assert set(first.cells[0].scores) == {"validation", "other"}
    ticket = tombola.Ticket.from_pretrained(tmp_path / "out" / first.cells[0].ticket)
    assert ticket.mask.sparsity == 0.5
    assert tombola.evaluate(ticket)["validation"]["accuracy"].value == pytest.approx(
        first.cells[0].scores["validation"]["accuracy"].value
    )


def test_equal_seeds_give_equal_bits_and_other_seeds_others(world, tmp_path):
    def bits(folder, seed):
        store = Store(folder)
        train = {**world.recipe()["train"], "epochs": 1}
        (one,) = plans(world, search={"method": "magnitude", "start": "finetuned"}, seed=seed, train=train)
        execute(one.ends(), store)
        return hashlib.sha256((store.path(one.mask) / "mask.safetensors").read_bytes()).hexdigest()

    assert bits(tmp_path / "a", 1) == bits(tmp_path / "b", 1) != bits(tmp_path / "c", 2)


def contents(store: Path) -> dict[str, str]:
    """Every file of every finished stage but what tells the time."""
    return {
        str(path.relative_to(store)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(store.rglob("*"))
        if path.is_file() and path.name not in ("manifest.json", "log.json") and path.suffix != ".lock"
        if "roots" not in path.relative_to(store).parts
    }


@pytest.mark.thorough
def test_killed_at_any_moment_the_same_command_ends_with_the_same_result(world, tmp_path):
    train = {**world.recipe()["train"], "epochs": 1, "checkpoint_minutes": 0}
    recipe = world.recipe(search=IMP, draw={"sparsity": 0.5}, train=train)
    (tmp_path / "recipe.yaml").write_text(json.dumps(recipe))
    reference = tombola.run(recipe, output=tmp_path / "ref", store=tmp_path / "reference")
    command = ["-m", "tombola", "run", tmp_path / "recipe.yaml", "--no-report"]
    command += ["--store", tmp_path / "killed", "-o", tmp_path / "out"]
    finished_before: set[Path] = set()
    for finished_stages in (0, 2):
        child = start_python(*command)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and child.is_alive():
            manifests = list((tmp_path / "killed").glob("*/*/manifest.json"))
            busy = list((tmp_path / "killed").glob("*/*.partial/work/checkpoints/step-*"))
            if len(manifests) >= finished_stages and busy:
                break
            time.sleep(0.01)
        child.kill()
        child.join()
        now = {path.parent for path in (tmp_path / "killed").glob("*/*/manifest.json")}
        assert finished_before <= now
        finished_before = now
    stamps = {path: (path / "manifest.json").stat().st_mtime_ns for path in finished_before}
    run_python(*command)
    assert all((path / "manifest.json").stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    assert contents(tmp_path / "killed") == contents(tmp_path / "reference")
    result = tombola.Result.load(tmp_path / "out")
    assert [cell.scores for cell in result.cells] == [cell.scores for cell in reference.cells]


def test_attacks_are_stages_and_robustness_a_curve_over_epochs(world, tmp_path):
    recipe = world.recipe(
        search={"method": "magnitude"},
        train={**world.recipe()["train"], "epochs": 2},
        attack={"recipes": ["deepwordbug"], "n": 12, "query_budget": 40, "every_epoch": True},
    )
    result = tombola.run(recipe, output=tmp_path / "out", store=tmp_path / "store")
    (cell,) = result.cells
    found = cell.attacks["deepwordbug"]
    assert found.n == 12
    assert found.accuracy_under_attack <= found.clean_accuracy
    assert cell.scores["deepwordbug"]["under attack"].value == found.accuracy_under_attack
    curve = cell.curves["deepwordbug"]
    assert len(curve) == 2
    assert curve[-1].accuracy_under_attack == found.accuracy_under_attack


@pytest.mark.parametrize(
    ("train", "search", "epochs"),
    [
        ({"steps": 24}, None, 2),  # of 12 steps each
        ({"steps": 5}, None, 0),
        ({"epochs": 3}, {**IMP, "train": {"epochs": 1}}, 1),
        ({"epochs": 1}, {**IMP, "train": {"epochs": 2}}, 2),
        ({"epochs": 4}, {"method": "magnitude", "start": "finetuned", "start_share": 0.5}, 2),
    ],
)
def test_the_curve_has_the_epochs_that_the_attacked_model_is_trained_for(
    world, tmp_path, train, search, epochs
):
    settings = {"batch_size": 16, "max_length": 16, **train}
    attack = {"recipes": ["deepwordbug"], "n": 2, "query_budget": 4, "every_epoch": True}
    recipe = world.recipe(train=settings, search=search, retrain=None, attack=attack)
    (cell,) = tombola.run(recipe, output=tmp_path / "out", store=tmp_path / "store").cells
    assert len(cell.curves["deepwordbug"]) == epochs
    assert len(list((tmp_path / "store" / cell.stages.model / "epochs").iterdir())) == epochs


@pytest.mark.parametrize("search", [{**IMP, "train": {"epochs": 1}}, {"method": "learned"}])
def test_a_mask_of_another_task_is_searched_as_on_that_task_itself(world, search):
    """What `per_task` says of the source goes for the search that inherits from its training."""
    source = world.task.with_name("source.yaml")
    source.write_text(world.task.read_text().replace("name: tiny", "name: source"))
    changes = {
        "per_task": {str(source): {"train": {"max_length": 8, "batch_size": 8}}},
        "search": {**search, "task": str(source)},
        "draw": {"sparsity": 0.25},
    }
    elsewhere, at_home = plans(world, **changes, task=[str(world.task), str(source)])
    assert elsewhere.mask.key == at_home.mask.key
    (again,) = expand(elsewhere.cell.raw())
    assert plan_cell(again).mask.key == elsewhere.mask.key


def test_an_unknown_attack_offers_the_nearest(world):
    with pytest.raises(tombola.TombolaError, match=r"unknown attack 'textfoler'\. Did you mean 'textfooler'"):
        expand(world.recipe(attack={"recipes": ["textfoler"]}))


def test_a_run_reads_each_split_once_however_many_cells_ask_for_it(world, tmp_path, monkeypatch):
    loads = []
    load = Task.load
    monkeypatch.setattr(
        Task, "load", lambda task, split, **options: loads.append(split) or load(task, split, **options)
    )
    recipe = world.recipe(
        seed=[1, 2], search={"method": "random"}, draw={"sparsity": [0.2, 0.4]}, retrain=None
    )
    tombola.run(recipe, output=tmp_path / "out", store=tmp_path / "store")
    assert sorted(loads) == ["train", "validation"]


def test_a_stage_on_ray_reads_each_split_once(world, tmp_path, monkeypatch):
    loads = []
    load = Task.load
    (plan,) = plans(world, train={"steps": 1, "max_length": 16, "augment": {"of": ["typos"]}})
    monkeypatch.setattr(
        Task, "load", lambda task, split, **options: loads.append(split) or load(task, split, **options)
    )
    store = Store(tmp_path / "store")
    for stage in plan.stages():
        assert _attempt(pickle.dumps(stage), store.address, [], 1) is None
    assert sorted(loads) == ["train", "train", "validation"], "the evaluation looks for overlaps"


def test_one_shot_pruning_of_an_early_checkpoint_scores_the_model_at_that_step(world, tmp_path):
    store = Store(tmp_path)
    search = {"method": "magnitude", "start": "finetuned", "start_step": 2}
    (one,) = plans(world, search=search)
    execute([one.mask], store)
    early = one.mask.of
    assert json.loads((store.open(early) / "log.json").read_text())["steps"] == 2
    weights = load_file(store.open(early) / "model.safetensors")
    mask = Mask.load(store.open(one.mask) / "mask.safetensors")
    kept = torch.cat([weights[f"bert.{name}.weight"][bits].abs() for name, bits in mask.items()])
    gone = torch.cat([weights[f"bert.{name}.weight"][~bits].abs() for name, bits in mask.items()])
    assert gone.max() <= kept.min()
    with pytest.raises(tombola.TombolaError, match="start_step: needs start: finetuned"):
        expand(world.recipe(search={"method": "magnitude", "start_step": 2}))


def test_every_round_of_imp_trains_fully_before_it_prunes_and_its_schedule_ends_within_it(finished):
    """Regressions: released code decays over all rounds together, and prunes for MLM before any training."""
    one, store = finished
    trainings = [stage for stage in one.model.with_inputs() if stage.kind == "train"]
    assert len(trainings) == 3  # dense, under 25 %, under 50 %
    assert trainings[0].mask is None
    for stage in trainings:
        log = json.loads((store.open(stage) / "log.json").read_text())
        assert log["steps"] == 72  # 6 epochs of 12 batches
        rates = [rate for _, _, rate in log["curve"]]
        assert rates[0] == pytest.approx(3e-3, rel=0.05)
        assert rates[-1] < 3e-3 / 50
    draws = [stage for stage in one.model.with_inputs() if stage.kind == "draw"]
    assert all(stage.of.kind == "train" for stage in draws)


@pytest.mark.parametrize(
    "search",
    [
        {"method": "magnitude"},
        {"method": "learned", "gate": {"kind": "threshold"}, "train": {"epochs": 1}},
        IMP,
    ],
    ids=["magnitude", "learned", "iterative"],
)
def test_a_search_may_cover_the_head_and_biases_and_leave_out_layers(world, tmp_path, search):
    store = Store(tmp_path)
    train = {**world.recipe()["train"], "epochs": 1}
    settings = {**search, "classifier": True, "biases": True, "layers": [1]}
    (one,) = plans(world, search=settings, train=train, draw={"sparsity": 0.5, "scope": "local"})
    execute(one.ends(), store)
    mask = Mask.load(store.open(one.mask) / "mask.safetensors")
    assert {group.layer for group in mask.units.groups} == {1, None}
    assert mask.removed == sum(round(group.count / 2) for group in mask.units.groups)
    assert store.read(one.mask).weight_sparsity == pytest.approx(0.5)
    weights = load_file(store.open(one.model) / "model.safetensors")
    assert torch.equal(weights["classifier.weight"] != 0, mask["head.classifier"])
    assert weights["bert.encoder.layer.0.output.dense.weight"].all()


def test_one_shot_of_random_weights_ranks_the_model_as_it_is_initialised_anew(world, tmp_path):
    """`oneshot.py --weight rand`."""
    store = Store(tmp_path)
    train = {**world.recipe()["train"], "epochs": 1}
    (one,) = plans(
        world, search={"method": "magnitude", "start": "random"}, train=train, draw={"sparsity": 0.5}
    )
    (usual,) = plans(world, search={"method": "magnitude"}, train=train, draw={"sparsity": 0.5})
    execute([*one.ends(), usual.mask], store)
    mask, pretrained = (Mask.load(store.open(plan.mask) / "mask.safetensors") for plan in (one, usual))
    model = load_model(find_model(str(world.model)).folder, Task.named(str(world.task)), seed=1)
    assert mask.base == pretrained.base
    mask.check(model, base=pretrained.base)
    apply_control(Reinitialise(kind="reinitialise"), model, seed=1)
    assert mask == draw(Scores.magnitude(Units.of(model, "weight", pretrained.base), model), 0.5)
    assert mask.overlap(pretrained) < 0.5


@pytest.mark.parametrize(
    "search", [{}, {"rewind_step": 3}, {"rewind": False}], ids=["start", "late", "gradual"]
)
def test_a_fresh_head_is_another_one_in_every_round_and_in_the_retraining(world, tmp_path, search):
    store = Store(tmp_path)
    train = {**world.recipe()["train"], "epochs": 1}
    (one,) = plans(world, search={**IMP, "head": "fresh", **search}, train=train, draw={"sparsity": 0.75})
    execute(one.ends(), store)
    rounds = [one.model, one.mask.of, one.mask.within.of]
    assert [stage.fresh_head for stage in rounds] == [3, 2, 1]
    heads = [prepare(stage, workspace(store)).classifier.weight for stage in rounds]
    heads.append(prepare(one.mask.within.within.of, workspace(store)).classifier.weight)
    for place, head in enumerate(heads):
        assert all(not torch.equal(head, other) for other in heads[:place])
    again = prepare(one.model, workspace(store)).classifier.weight
    assert torch.equal(again, heads[0])
    encoders = [
        prepare(stage, workspace(store)).bert.embeddings.word_embeddings.weight for stage in rounds[:2]
    ]
    assert torch.equal(*encoders) == search.get("rewind", True)


def test_with_fresh_heads_a_ticket_is_still_the_training_of_the_next_round(world):
    search = {**IMP, "head": "fresh"}
    (quarter,) = plans(world, search=search, draw={"sparsity": 0.25})
    assert quarter.model.key in {stage.key for stage in stages(world, search=search, draw={"sparsity": 0.5})}


def test_rounds_may_be_trained_otherwise_than_the_dense_model(world):
    """SRNets' imp/prune_after_ft: a fine-tuned model, pruned by rounds of another training."""
    search = {
        **IMP,
        "start": "finetuned",
        "rewind": False,
        "train": {"learning_rate": 1e-4},
        "epochs": "in_all",
    }
    (one,) = plans(world, search=search, draw={"sparsity": 0.75})
    (dense,) = plans(world)
    third, second, first = one.mask, one.mask.within, one.mask.within.within
    assert first.of.key == dense.model.key  # the fine-tuned model is pruned as it is
    assert second.of.start.key == dense.model.key
    assert third.of.start.key == second.of.key
    assert {stage.of.train.learning_rate for stage in (second, third)} == {1e-4}
    assert one.model.train.learning_rate == 3e-3  # retraining is as `train`
    assert {stage.of.training_steps() for stage in (second, third)} == {
        18
    }  # a quarter of 6 epochs of 12 steps
    (rewinding,) = plans(world, search={**search, "rewind": True}, draw={"sparsity": 0.75})
    assert rewinding.mask.of.start.key == rewinding.model.start.key == dense.model.key


def test_epochs_in_all_are_those_of_all_rounds_together(world):
    per_round, in_all = (
        plans(world, search={"method": "iterative", "step": 0.1, "epochs": epochs}, draw={"sparsity": 0.3})[0]
        for epochs in ("per_round", "in_all")
    )
    assert (per_round.mask.of.train.epochs, in_all.mask.of.train.epochs) == (6, pytest.approx(0.6))
    assert in_all.model.train.epochs == 6
    steps = {**world.recipe()["train"], "steps": 40}
    (stepwise,) = plans(world, search={"method": "iterative", "step": 0.1, "epochs": "in_all"}, train=steps)
    assert stepwise.mask.of.training_steps() == 4


@pytest.mark.parametrize(
    "search",
    [
        {**IMP, "rewind_step": 73},
        {"method": "magnitude", "start": "finetuned", "start_step": 73},
        {"method": "learned", "start_step": 73},
    ],
    ids=["rewind", "early", "timing"],
)
def test_a_step_after_the_end_of_training_is_refused_while_planning(world, search):
    with pytest.raises(tombola.TombolaError, match=r"step 73 is beyond the end .* takes 72 optimizer steps"):
        plan_run(world.recipe(search=search))
    key = next(name for name in search if name.endswith("_step"))
    plan_run(world.recipe(search={**search, key: 72}))


def test_counts_are_drawn_exactly_and_told_in_results(world, tmp_path):
    store = Store(tmp_path)
    train = {**world.recipe()["train"], "epochs": 1}
    (one,) = plans(world, search={"method": "importance"}, train=train, draw={"heads": 5, "ffns": 1})
    assert one.mask.label == "draw 5 heads and 1 FFNs"
    execute(one.ends(), store)
    drawn = store.read(one.mask)
    assert (drawn.removed, drawn.units) == (6, 10)
    assert drawn.weight_sparsity == pytest.approx((5 * 256 + 768) / 3840, abs=1e-9)
    mask = Mask.load(store.open(one.mask) / "mask.safetensors")
    assert sum(int((~mask[f"layers.{layer}.heads"]).sum()) for layer in range(2)) == 5


@pytest.mark.parametrize(
    ("search", "drawn", "sentence"),
    [
        (
            {"method": "importance"},
            {"heads": 7},
            r"draw\.heads: 7 of the model's 8 heads .*min_heads: 1: remove at most 6",
        ),
        ({"method": "importance", "min_heads": 0}, {"heads": 8}, "8 of the model's 8 heads .*at most 7"),
        ({"method": "random", "units": "head"}, {"heads": 8}, "8 of the model's 8 heads .*at most 7"),
        ({"method": "importance"}, {"ffns": 3}, "3 of the model's 2 ffns .*at most 2"),
        (
            {"method": "magnitude", "units": "layer"},
            {"sparsity": 0.8},
            r"0\.8 of 2 units \(layer\) is all of them",
        ),
        (
            {"method": "random", "units": "head"},
            {"sparsity": 0.9, "scope": "local"},
            "of the 4 heads .*is all of them",
        ),
        ({"method": "magnitude", "layers": [2]}, {}, "there is no layer 2: the model has layers 0 to 1"),
    ],
)
def test_a_draw_that_leaves_nothing_is_refused_before_the_work(world, search, drawn, sentence):
    with pytest.raises(RecipeError, match=sentence):
        plans(world, search=search, draw=drawn)


def test_a_mask_of_other_weights_needs_consent(world, tmp_path):
    """BERT-Tickets' `--weight_pertub`: the mask of one model on the weights of another of its geometry."""
    other = tmp_path / "other"
    model = load_model(find_model(str(world.model)).folder, Task.named(str(world.task)), seed=1)
    apply_control(Reinitialise(kind="reinitialise"), model, seed=3)
    model.save_pretrained(other)
    draw(Scores.magnitude(Units.of(model, "weight"), model), 0.4).save(tmp_path / "mask.safetensors")
    mine, theirs = (
        fingerprint(load_model(place, Task.named(str(world.task)), 1)) for place in (world.model, other)
    )
    given = {"method": "given", "masks": [str(tmp_path / "mask.safetensors")]}
    store = Store(tmp_path / "store")
    train = {**world.recipe()["train"], "epochs": 1}
    (refusing,) = plans(world, search=given, train=train)
    with pytest.raises(MaskMismatch, match="base: any") as caught:
        refusing.mask.run(workspace(store, tmp_path))
    assert mine.fingerprint in str(caught.value)
    assert theirs.fingerprint in str(caught.value)
    (one,) = plans(world, search={**given, "base": "any"}, train=train)
    execute(one.ends(), store)
    mask = Mask.load(store.open(one.mask) / "mask.safetensors")
    assert mask == Mask.load(tmp_path / "mask.safetensors")
    assert mask.base == mine
    weights = load_file(store.open(one.model) / "model.safetensors")
    name = "encoder.layer.1.output.dense"
    assert torch.equal(weights[f"bert.{name}.weight"] != 0, mask[name])
    assert refusing.mask.key != one.mask.key
