"""`compress`: from a model and a data file to a smaller model with its proof."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tombola
from tests.children import run_python
from tests.shrink.test_latency import shares_of_flops
from tests.tiny import tiny
from tests.world import World, sentences
from tombola.api import choosing
from tombola.api.compressing import plan_order
from tombola.api.orders import Order, plan_compression
from tombola.api.original import is_finetuned
from tombola.errors import TombolaError
from tombola.pipeline.costs import StageCosts
from tombola.pipeline.stages.train import Train
from tombola.recipe.builtin import RECIPES
from tombola.recipe.recipe import Recipe
from tombola.results import compression
from tombola.results.result import Result
from tombola.shrink import latency
from tombola.tasks import Task
from tombola.tasks.inferring import infer_task

pytest.importorskip("onnxruntime")

QUICK = (
    "precision=fp32",
    "train={epochs: 16, learning_rate: 3.0e-3, batch_size: 16, max_length: 16}",
    "retrain.epochs=6",
    "retrain.learning_rate=3.0e-3",
    "attack.n=6",
    "attack.recipes=[deepwordbug]",
    "search.batches=2",
    "draw.multiple=1",
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "films.csv"
    rows = dict.fromkeys(sentences(400, seed=5))
    path.write_text("\n".join(["sentence,label", *(f"{text},{label}" for text, label in rows)]) + "\n")
    return path


@pytest.fixture(scope="module")
def compressed(world: World, data: Path, tmp_path_factory: pytest.TempPathFactory) -> tombola.Compression:
    folder = tmp_path_factory.mktemp("compressed")
    return tombola.compress(
        world.model,
        data,
        speedup=None,
        parameters=0.8,
        batch_size=(1,),
        overrides=(*QUICK, "measure.batch_sizes=[1]"),
        output=folder / "out",
        store=folder / "store",
    )


def test_original_and_ticket_are_judged_in_both_runtimes(compressed: tombola.Compression) -> None:
    cells = [(cell.variant, cell.recipe.get("runtime", "transformers")) for cell in compressed.result.cells]
    assert sorted(cells) == [
        ("original", "onnx_int8"),
        ("original", "transformers"),
        ("ticket", "onnx_int8"),
        ("ticket", "transformers"),
    ]
    for cell in compressed.result.cells:
        assert set(cell.scores) == {"test", "test+typos", "deepwordbug"}
        assert cell.measured.ticket.bytes > 0
        attacked = cell.attacks["deepwordbug"]
        curve = [point.accuracy for point in attacked.by_changed_words]
        assert (curve[0], curve[-1]) == (attacked.clean_accuracy, attacked.accuracy_under_attack)
        assert curve == sorted(curve, reverse=True)
    ticket, original = compressed.cell("ticket"), compressed.cell("original")
    assert ticket.measured.ticket.parameters <= 0.8 * original.measured.ticket.parameters
    assert original.scores["test"]["accuracy"].value > 0.9
    assert compressed.clean.low <= compressed.clean.mean <= compressed.clean.high
    assert compressed.verdict.startswith("The ticket ")


def test_the_ticket_is_an_ordinary_model_folder(compressed: tombola.Compression) -> None:
    names = {path.name for path in compressed.model.iterdir()}
    assert {
        "config.json",
        "model.safetensors",
        "model.onnx",
        "model.int8.onnx",
        "task.yaml",
        "defense.json",
        "README.md",
    } <= names
    code = (
        "import sys, transformers\n"
        f"model = transformers.AutoModelForSequenceClassification.from_pretrained({str(compressed.model)!r})\n"
        "assert 'tombola' not in sys.modules\n"
        "print(model.num_parameters())"
    )
    assert int(run_python("-c", code)) == compressed.cell("ticket").measured.ticket.parameters


def test_the_ticket_names_the_model_it_came_from_and_its_recipe_makes_it_again(
    compressed: tombola.Compression, world: World, tmp_path: Path
) -> None:
    """The original was trained in the store, under a name that nobody else knows."""
    card = (compressed.model / "README.md").read_text()
    assert f"base_model: {world.model.name}\n" in card
    assert f" ticket of {world.model.name} for films\n" in card
    assert re.search(
        r"It was measured to be [\d.]+ times \(batch size 1(, uncertain)?\) as fast as the dense", card
    )
    assert "`AutoModelForSequenceClassification.from_pretrained`, or `pipeline(" in card
    ticket = tombola.Ticket.from_pretrained(compressed.model)
    assert ticket.info["base"]["name"] == world.model.name
    assert ticket.recipe["train"]["epochs"] == 16
    whole = compressed.result.record.recipe
    assert {name: ticket.recipe[name] for name in ("model", "pooler", "train") if name in whole} == {
        name: whole[name] for name in ("model", "pooler", "train") if name in whole
    }
    again = tombola.run(
        {**ticket.recipe, "attack": None, "measure": None},
        output=tmp_path / "again",
        store=compressed.result.folder.parent / "store",
    )
    (cell,) = again.cells
    other = tombola.Ticket.from_pretrained(again.folder / str(cell.ticket))
    theirs = other.model().state_dict()
    assert all(tensor.equal(theirs[name]) for name, tensor in ticket.model().state_dict().items())


def test_the_onnx_file_is_judged_by_the_verbs_as_in_the_run(compressed: tombola.Compression) -> None:
    file, cell = compressed.model / "model.int8.onnx", compressed.cell("ticket", "onnx_int8")
    scores = tombola.evaluate(file, on=["test", "test+typos"])
    assert scores == {on: cell.scores[on] for on in ("test", "test+typos")}
    report = tombola.attack(file, "deepwordbug", split="test", n=6)
    assert report.summary()["accuracy_under_attack"] == cell.attacks["deepwordbug"].accuracy_under_attack
    assert report.summary()["mean_queries"] == cell.attacks["deepwordbug"].mean_queries
    clean, misspelt = tombola.predict(
        file, ["a lovely film", "a lovley film"]
    )  # the corrector stands before it
    assert clean == misspelt


def test_the_folder_knows_its_task_elsewhere(
    compressed: tombola.Compression, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = Path(shutil.copytree(compressed.model, tmp_path / "moved"))
    info = json.loads((moved / "ticket.json").read_text())
    info["recipe"]["task"] = "gone/films.task.yaml"  # as on another machine
    (moved / "ticket.json").write_text(json.dumps(info))
    (moved / "checksums.json").unlink()
    monkeypatch.chdir(tmp_path)
    expected = {"test": compressed.cell("ticket").scores["test"]}
    assert tombola.evaluate("moved", on=["test"], data=data.parent) == expected
    assert tombola.evaluate("moved", on=["test"], task="moved/task.yaml", data=data.parent) == expected
    assert tombola.predict("moved", ["a lovely film"])
    with pytest.raises(TombolaError, match=r"moved: no file for films/train .*set its folder: TOMBOLA_DATA"):
        tombola.evaluate("moved", on=["test"])


def test_what_was_inferred_is_told(compressed: tombola.Compression, data: Path) -> None:
    assert compressed.notes[:2] == ("text: sentence", "label: label")
    assert compressed.notes[-1] == f"task file: {data.with_name('films.task.yaml')}"


def test_a_fine_tuned_classifier_is_not_trained_again(
    compressed: tombola.Compression, data: Path, tmp_path: Path
) -> None:
    raw, _ = plan_compression(Order(str(compressed.model), str(data), overrides=QUICK))
    from tombola.api.original import is_finetuned
    from tombola.tasks import Task

    assert is_finetuned(raw["model"], Task.named(raw["task"]))
    config = json.loads((compressed.model / "config.json").read_text())
    config |= {"id2label": {str(n): f"L{n}" for n in range(5)}}
    (tmp_path / "five").mkdir()
    for file in compressed.model.iterdir():
        if file.name not in ("config.json", "checksums.json"):
            (tmp_path / "five" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "five" / "config.json").write_text(json.dumps(config))
    with pytest.raises(TombolaError, match="is a classifier with 5 outputs, but films has 2 labels"):
        is_finetuned(str(tmp_path / "five"), Task.named(raw["task"]))


@pytest.mark.parametrize(
    ("outputs", "task", "message"),
    [
        (
            1,
            "rte",
            r"has a single output, as for regression, but rte has 2 labels \(entailment, not_entailment\)",
        ),
        (
            2,
            "stsb",
            "is a classifier with 2 outputs, but stsb predicts a number: use a model that was fine-tuned",
        ),
    ],
)
def test_a_regression_model_and_a_classifier_are_told_apart(
    tmp_path: Path, outputs: int, task: str, message: str
) -> None:
    tiny("bert", num_labels=outputs).save_pretrained(tmp_path)
    with pytest.raises(TombolaError, match=message):
        is_finetuned(str(tmp_path), Task.named(task))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"against": ("noise",)}, "--against noise: choose from typos, synonyms"),
        ({"latency": 5.0, "parameters": 0.5}, "are alternatives: pass only one of them"),
        ({"speedup": 2.0, "fastest": True}, "are alternatives: pass only one of them"),
        ({"within": -3.0}, "--within -3: takes the accepted loss in points, 0 or more"),
        ({"within": float("nan")}, "--within nan: takes the accepted loss in points"),
        ({"seconds": float("inf")}, "--time inf: takes a number of seconds greater than 0"),
        ({"seconds": 0.0}, "--time 0: takes a number of seconds greater than 0"),
        (
            {"recipe": "bert_tickets/quick"},
            r"bert_tickets/quick: is not a recipe for compress; it lacks retrain",
        ),
        ({"overrides": ("variants=null",)}, "lacks variants.original, variants.ticket"),
        ({"overrides": ("search=null",)}, "it lacks search:"),
        (
            {"overrides": ("seed=[1,2]", "retrain.epochs=[2,3]")},
            "retrain.epochs, seed: compress makes a single ticket",
        ),
        ({"overrides": ("model=minilm",)}, "the argument MODEL sets model: remove one of them"),
        ({"overrides": ("draw={speedup: 3}",), "speedup": 2.0}, "--speedup sets draw.speedup: remove one"),
        (
            {"overrides": ("draw.latency=3",), "parameters": 0.5},
            "--parameters sets draw.latency: remove one",
        ),
        ({"overrides": ("draw.threads=2",), "threads": 1}, "--threads sets draw.threads: remove one"),
        ({"overrides": ("defend=[]",), "against": ("typos",)}, "--against sets defend: remove one"),
        (
            {"overrides": ("draw.batch_size=4",), "parameters": 0.5},
            "draw: batch_size: only works with speedup or latency",
        ),
        ({"overrides": ("runtime=onnx_int8",)}, r"write runtime=\[transformers, onnx_int8\]"),
        ({"overrides": ("evaluate.on=[]",)}, "evaluate.on: compress needs data to compare"),
        ({"overrides": ("measure=3",)}, "measure: takes a mapping of settings, not 3"),
        ({"overrides": ("retrain.augment=typos",)}, "retrain.augment: takes a mapping of settings"),
        ({"overrides": ("train.batch_size=x",)}, "train.batch_size: must be a valid integer"),
        ({"device": "warp"}, "device warp: not available in torch on this machine"),
        (
            {"overrides": ("retrain.steps=10",), "seconds": 60.0},
            "--time sets retrain.epochs: remove retrain.steps",
        ),
    ],
)
def test_mistakes(world: World, data: Path, changes: dict, message: str) -> None:
    with pytest.raises(TombolaError, match=message):
        plan_compression(Order(str(world.model), str(data), **changes))


def test_a_place_that_cannot_take_the_result_is_refused_before_the_work(
    world: World, data: Path, tmp_path: Path
) -> None:
    own = tmp_path / "out" / "model"
    shutil.copytree(world.model, own)
    for model, message in (
        (world.model, "was not written by tombola"),
        (own, "choose another output folder with -o"),
    ):
        with pytest.raises(TombolaError, match=message):
            tombola.compress(model, data, output=tmp_path / "out", store=tmp_path / "store")
    for place in (data, data / "out"):
        with pytest.raises(TombolaError, match=f"cannot write to the output folder {place} .*--output"):
            tombola.compress(world.model, data, output=place, store=tmp_path / "store")
    assert not (tmp_path / "store" / "train").exists()


def test_a_target_that_cannot_be_met_is_refused_before_the_original_is_trained(
    world: World, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(TombolaError, match=r"the smallest possible model has .* of the parameters"):
        tombola.compress(
            world.model, data, parameters=0.01, output=tmp_path / "out", store=tmp_path / "store"
        )
    assert not (tmp_path / "store" / "train").exists()


def test_a_fine_tuned_original_is_not_trained_again(world: World, data: Path, tmp_path: Path) -> None:
    # Regression: train.steps trained it further, and the ticket was compared with that.
    tiny("bert", num_labels=2).save_pretrained(tmp_path / "classifier")
    shutil.copy(world.model / "tokenizer.json", tmp_path / "classifier")
    shutil.copy(world.model / "tokenizer_config.json", tmp_path / "classifier")
    order = Order(str(tmp_path / "classifier"), str(data), overrides=("train.steps=5", "retrain.steps=7"))
    plan, notes = plan_order(order)
    assert {stage.train.steps or stage.train.epochs for stage in plan.stages if isinstance(stage, Train)} == {
        0,
        7,
    }
    assert any(note.startswith("train.steps: not used, since") for note in notes)


def test_changes_and_edited_recipes_win_over_defaults(world: World, data: Path, tmp_path: Path) -> None:
    order = Order(str(world.model), str(data))

    def recipe(*overrides: str, **changes: Any) -> dict[str, Any]:
        return plan_compression(replace(order, overrides=overrides, **changes))[0]

    assert recipe()["draw"]["speedup"] == 2.0
    assert recipe("draw.speedup=3")["draw"]["speedup"] == 3
    assert recipe(latency=5.0)["draw"]["batch_size"] == [1]  # 32 texts never take as little time as one
    assert recipe("draw.batch_size=[1,8]", latency=5.0)["draw"]["batch_size"] == [1, 8]
    fewer = recipe("draw.parameters=0.5")["draw"]
    assert (fewer["parameters"], "speedup" in fewer, "batch_size" in fewer) == (0.5, False, False)
    plain = recipe("defend=[unicode]")
    assert (plain["defend"], plain["variants"]["original"]["defend"]) == (["unicode"], [])
    assert recipe("retrain.augment.of=[casing]")["retrain"]["augment"]["of"] == ["casing"]
    assert recipe("evaluate.on=[validation]")["evaluate"]["on"] == ["validation"]
    assert recipe("attack.on=validation")["attack"]["on"] == "validation"
    assert recipe("measure.length=9", threads=1)["measure"] == {
        "batch_sizes": [1, 32],
        "length": 9,
        "threads": 1,
    }
    assert recipe("measure=null")["measure"] is None
    assert recipe("name=mine")["name"] == "mine"
    edited = tmp_path / "edited.yaml"
    text = (RECIPES / "compress" / "default.yaml").read_text()
    edited.write_text(
        text.replace("speedup: 2.0", "speedup: 3.0").replace("[unicode, spelling]", "[unicode]")
    )
    mine = recipe(recipe=str(edited))
    assert (mine["draw"]["speedup"], mine["defend"]) == (3.0, ["unicode"])
    assert recipe(recipe=str(edited), parameters=0.5)["draw"].get("speedup") is None


def test_the_device_decides_where_latency_is_measured_and_onnx_stays_on_the_cpu(
    world: World, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tombola.api.order_checks.check_device", lambda name: name)
    raw, notes = plan_compression(Order(str(world.model), str(data), device="cuda"))
    assert raw["draw"]["device"] == raw["measure"]["device"] == "cuda"
    assert raw["runtime"] == "transformers"
    assert "ONNX is skipped: it would run on the cpu, but the target device is cuda" in notes
    raw, _ = plan_compression(Order(str(world.model), str(data), parameters=0.5, device="cuda"))
    assert "device" not in raw["draw"]
    assert raw["measure"]["device"] == "cuda"
    raw, _ = plan_compression(Order(str(world.model), str(data)))
    assert "device" not in raw["draw"]
    assert raw["runtime"] == ["transformers", "onnx_int8"]


def test_columns_of_a_task_are_its_own(world: World) -> None:
    with pytest.raises(TombolaError, match="--text and --label are for data files"):
        plan_compression(Order(str(world.model), str(world.task), label="label"))


def test_what_it_withstands_decides_training_and_correction(world: World, data: Path) -> None:
    raw, _ = plan_compression(Order(str(world.model), str(data), against=()))
    assert raw["defend"] == []
    assert "augment" not in raw["retrain"]
    assert raw["search"]["inputs"] == "clean"
    raw, _ = plan_compression(Order(str(world.model), str(data), against=("typos", "synonyms")))
    assert raw["retrain"]["augment"]["of"] == ["typos", "synonyms"]
    assert raw["defend"] == ["unicode", "spelling"]


def test_few_texts_are_trained_on_for_more_epochs(world: World, data: Path) -> None:
    def epochs(*overrides: str, **order: Any) -> tuple[float, tuple[str, ...]]:
        raw, notes = plan_compression(Order(str(world.model), str(data), overrides=overrides, **order))
        return raw["retrain"]["epochs"], tuple(note for note in notes if "the ticket is trained for" in note)

    texts = len(Task.named(str(infer_task(data).path)).load("train"))
    steps = -(-texts // 2)
    assert epochs("train.batch_size=2") == (
        -(-1500 // steps),
        (f"the ticket is trained for {-(-1500 // steps)} epochs, since an epoch has only {steps} steps",),
    )
    assert epochs()[0] == 20  # and no more
    assert epochs("retrain.learning_rate=1.0e-3")[0] == 20
    assert epochs("train.batch_size=2", "data.train=40")[0] == 20
    assert epochs("train.batch_size=1", "retrain.epochs=3") == (3, ())
    assert epochs(seconds=600.0) == (4, ())
    assert epochs(recipe=str(RECIPES / "quickstart.yaml"))[1] == ()


def test_a_pre_trained_model_is_fine_tuned_long_enough_on_few_texts(
    world: World, data: Path, tmp_path: Path
) -> None:
    """Three epochs of nine steps teach an original nothing, and make any ticket look good beside it."""

    def epochs(*overrides: str, model: Path = world.model, **order: Any) -> tuple[float, int]:
        raw, notes = plan_compression(Order(str(model), str(data), overrides=overrides, **order))
        return raw["train"]["epochs"], sum("the original is trained for" in note for note in notes)

    texts = len(Task.named(str(infer_task(data).path)).load("train"))
    assert epochs() == (20, 1)  # and no more
    assert epochs("train.batch_size=8") == (-(-300 // -(-texts // 8)), 1)
    assert epochs("train.batch_size=1") == (3, 0)
    assert epochs("train.epochs=5") == (5, 0)
    assert epochs(seconds=600.0) == (20, 1)  # the limit is for the training of the ticket
    assert epochs(recipe=str(RECIPES / "quickstart.yaml"))[1] == 0
    tuned = tmp_path / "tuned"
    shutil.copytree(world.model, tuned)
    config = json.loads((tuned / "config.json").read_text())
    labels = {"id2label": {"0": "negative", "1": "positive"}}
    named = {"architectures": ["BertForSequenceClassification"], **labels}
    (tuned / "config.json").write_text(json.dumps({**config, **named}))
    assert epochs(model=tuned)[1] == 0


@pytest.mark.parametrize(
    ("length", "note"),
    [
        (
            6,
            "50% of the texts are longer than 6 tokens and are truncated; to read more, raise train.max_length (to at "
            "most 64)",
        ),
        (64, "25% of the texts are longer than 64 tokens and are truncated"),
        (128, "25% of the texts are longer than 64 tokens and are truncated"),
    ],
)
def test_texts_that_are_too_long_are_counted_before_the_work(
    world: World, tmp_path: Path, length: int, note: str
) -> None:
    texts = ["a film", "the film", "the plot was very very fine", "fine " * 70]
    rows = [f"{texts[i % 4]},{i % 2}" for i in range(40)]
    data = tmp_path / "long.csv"
    data.write_text("\n".join(["text,label", *rows]) + "\n")
    task = tmp_path / "long.yaml"
    infer_task(data).path.rename(task)
    task.write_text(task.read_text().partition("\nholdout")[0].replace("{train:", "{test: long.csv, train:"))
    _, notes = plan_compression(Order(str(world.model), str(task), overrides=(f"train.max_length={length}",)))
    assert [one for one in notes if "truncated" in one] == [note]
    _, notes = plan_compression(Order(str(world.model), str(world.task)))
    assert not [one for one in notes if "truncated" in one]


def test_a_ticket_that_should_withstand_synonyms_is_trained_on_swapped_words(
    world: World, data: Path
) -> None:
    order = Order(str(world.model), str(data), against=("synonyms",))
    raw, notes = plan_compression(order)
    assert raw["retrain"]["adversary"]["kind"] == "swaps"
    assert any(note.startswith("against synonyms: the ticket is also trained on") for note in notes)
    Recipe.model_validate(
        {name: value for name, value in raw.items() if name != "variants"} | {"runtime": "onnx"}
    )
    raw, _ = plan_compression(replace(order, overrides=("retrain.adversary={kind: freelb}",)))
    assert raw["retrain"]["adversary"] == {"kind": "freelb"}
    raw, notes = plan_compression(replace(order, overrides=("retrain.adversary=null",)))
    assert raw["retrain"]["adversary"] is None
    assert not any("synonyms" in note for note in notes)
    raw, _ = plan_compression(replace(order, seconds=600.0))
    assert raw["retrain"]["adversary"]["kind"] == "swaps"
    assert "adversary" not in plan_compression(Order(str(world.model), str(data)))[0]["retrain"]


FAST = (*QUICK[:-2], "runtime=transformers", "attack=null", "search.batches=2", "draw.multiple=1")


@pytest.fixture
def timed_by_flops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "time_shares", shares_of_flops())


@pytest.mark.thorough
@pytest.mark.usefixtures("timed_by_flops")
def test_the_fastest_ticket_is_chosen_on_training_data_that_is_held_out_from_all_trainings(
    world: World, tmp_path: Path
) -> None:
    found = tombola.compress(
        world.model,
        world.task,
        speedup=None,
        within=3.0,
        against=(),
        overrides=FAST,
        output=tmp_path / "out",
        store=tmp_path / "store",
    )
    choice = Result.load(tmp_path / "out" / "choice")
    assert choice.targets == ["validation", "holdout"]
    before = next(cell for cell in choice.cells if cell.variant == "original").scores["holdout"]["accuracy"]
    tickets = {cell.axes["draw.speedup"]: cell for cell in choice.cells if cell.variant == "ticket"}
    assert set(tickets) == {1.5, 2.0, 3.0}  # so small a model has none that is four times faster
    assert [failure.label for failure in choice.failures] == ["draw uniform layers for 4 × speed"]
    fitting = [
        speedup
        for speedup, cell in tickets.items()
        if 100 * (before.value - cell.scores["holdout"]["accuracy"].value) <= 3.0
    ]
    ticket = found.cell("ticket")
    assert ticket.recipe["draw"]["speedup"] == max(fitting)
    assert (
        ticket.stages.model == tickets[max(fitting)].stages.model
    )  # the chosen ticket itself, not another training
    assert next(iter(ticket.scores)) == "validation"
    assert all(cell.recipe["data"]["holdout"] == 0.1 for cell in found.result.cells)
    assert found.notes == (f"speed-up {max(fitting):g}: the largest that loses at most 3 points on holdout",)


@pytest.mark.usefixtures("timed_by_flops")
def test_a_loss_that_no_ticket_keeps_within_is_told_with_all_losses(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "_lost", lambda before, after, metric: 5.0)
    with pytest.raises(
        TombolaError, match=r"every ticket loses more than 0 points on holdout \(lost at 1\.5 x: 5\.0, "
    ):
        tombola.compress(
            world.model,
            world.task,
            speedup=None,
            within=0.0,
            against=(),
            overrides=(*FAST, "retrain.epochs=1", "train.epochs=1"),
            output=tmp_path / "out",
            store=tmp_path / "store",
        )
    assert not (tmp_path / "out" / "model").exists()


def test_a_time_is_turned_into_epochs_whether_or_not_the_training_is_known(
    world: World, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paced = tuple(change for change in QUICK if not change.startswith("retrain.epochs"))
    order = Order(str(world.model), str(data), overrides=paced, seconds=30.0)
    raw, _ = plan_compression(order)
    raw["retrain"]["epochs"] = 6
    seen: list[bool] = []

    def costs(plan, store, *, afresh):
        seen.append(afresh)
        return [StageCosts("train", 2, 2, 0, 60, 60, 12.0, without_attacks=True)]

    monkeypatch.setattr(choosing, "estimate", costs)
    found, notes = choosing.in_time(raw, None, None, 30.0)
    assert found["retrain"]["epochs"] == 15  # six epochs take twelve seconds
    assert notes == (
        "epochs of training the ticket: 15, about 0.5 min, not counting attacks during training",
    )
    found, (note,) = choosing.in_time(raw, None, None, 0.1)
    assert found["retrain"]["epochs"] == 1
    assert "more than the 0.0 min of --time: a ticket needs at least one epoch" in note
    assert choosing.in_time(raw, None, None, 1e6)[0]["retrain"]["epochs"] == 30
    assert all(seen)
    four = {**raw, "draw": {**raw["draw"], "speedup": None}}
    found, (note,) = choosing.in_time(four, None, None, 30.0)
    assert found["retrain"]["epochs"] == 3  # four tickets share the time
    assert note.startswith("epochs of training each of the 4 tickets: 3, about 0.4 min in total")
    monkeypatch.undo()
    plan, notes = plan_order(replace(order, seconds=1e6), store=tmp_path / "store")
    assert notes[0] == f"task: {data.with_name('films.task.yaml')}, which already existed"
    assert notes[-1].startswith("epochs of training the ticket: 30, about ")
    assert next(cell for cell in plan.cells if cell.mask).cell.recipe.retrain.epochs == 30
    with pytest.raises(TombolaError, match=r"--time sets retrain\.epochs"):
        plan_order(replace(order, overrides=(*paced, "retrain.epochs=0")), store=tmp_path / "store")


def test_no_text_is_corrected_into_english_words(world: World, tmp_path: Path) -> None:
    data = tmp_path / "critiques.csv"
    texts = (
        "Le film est beaucoup trop long",
        "Une comédie sensible et originale",
        "Très bonne livraison rapide",
    )
    rows = [f"{text} {n},{'bon' if n % 2 else 'mauvais'}" for n in range(20) for text in texts]
    data.write_text("\n".join(["texte,label", *rows]) + "\n", encoding="utf-8")
    raw, notes = plan_compression(Order(str(world.model), str(data), overrides=QUICK))
    assert raw["defend"] == ["unicode", {"kind": "spelling", "dictionary": None}]
    assert any(note.startswith("language: not English (") for note in notes)
    assert "language: und; the spelling corrector only knows the words of the training texts" in notes


def test_a_dry_run_plans_what_a_run_trains(world: World, data: Path) -> None:
    order = Order(str(world.model), str(data), parameters=0.8, batch_size=(1,), overrides=QUICK)
    plan, _ = plan_order(order)
    steps = [stage.training_steps() for stage in plan.stages if isinstance(stage, Train)]
    original, ticket = sorted(filter(None, steps), reverse=True)
    assert (original / 16, ticket / 6) == (pytest.approx(ticket / 6), pytest.approx(ticket / 6))


@pytest.mark.parametrize(("training", "biased"), [("train", [True, True]), ("retrain", [False, True])])
def test_a_debiasing_loss_uses_the_bias_model(
    world: World, data: Path, training: str, biased: list[bool], caplog: pytest.LogCaptureFixture
) -> None:
    overrides = (*QUICK, "bias={method: shallow}", f"{training}.loss.kind=poe")
    order = Order(str(world.model), str(data), parameters=0.8, batch_size=(1,), overrides=overrides)
    plan, _ = plan_order(order)
    trained = [stage for stage in plan.stages if isinstance(stage, Train) and stage.training_steps()]
    assert [stage.bias is not None for stage in trained] == biased
    assert "has no effect" not in caplog.text


def test_a_dry_run_of_the_choice_plans_every_speed_up(world: World, data: Path, tmp_path: Path) -> None:
    order = Order(str(world.model), str(data), fastest=True, overrides=QUICK)
    plan, _ = plan_order(order, store=tmp_path / "store")
    assert [cell.cell.recipe.draw.speedup for cell in plan.cells if cell.mask] == [1.5, 2.0, 3.0, 4.0]
    assert {on for cell in plan.cells for on in cell.evaluations} == {"test", "validation"}
    assert all(cell.cell.recipe.data.holdout is None for cell in plan.cells)
    plan, _ = plan_order(replace(order, data=str(world.task)), store=tmp_path / "store")
    assert {on for cell in plan.cells for on in cell.evaluations} == {"validation", "holdout"}


@pytest.mark.parametrize("override", ["evaluate.on=[test, validation+typos]", "attack.on=validation"])
def test_the_choice_is_never_made_on_reported_data(
    world: World, data: Path, tmp_path: Path, override: str
) -> None:
    order = Order(str(world.model), str(data), fastest=True, overrides=(*QUICK, override))
    plan, _ = plan_order(order, store=tmp_path / "store")
    assert {on for cell in plan.cells for on in cell.evaluations} == {"test", "holdout"}
    assert all(cell.cell.recipe.data.holdout == 0.1 for cell in plan.cells)


def test_data_that_a_recipe_reports_by_default_is_not_chosen_on() -> None:
    raw = {"task": "paws_wiki", "draw": {"speedup": None}, "evaluate": {"on": ["test"]}}
    assert choosing.with_choice_data(raw)[1] == "validation"
    for reporting in ({**raw, "evaluate": {}}, {**raw, "attack": {"n": 9}}):
        assert choosing.with_choice_data(reporting)[1] == "holdout"
