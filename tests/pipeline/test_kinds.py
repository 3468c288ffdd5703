"""Questions and masked words all the way: from a recipe to a ticket and its scores."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file

import tombola
from tests.pipeline.running import plans
from tests.tiny import tiny
from tests.training.test_resume import Killed, killed_at
from tests.training.toy import TOKENIZER, same_weights
from tests.words import word_tokenizer
from tests.world import World
from tombola.errors import RecipeError
from tombola.masks import Mask
from tombola.models.loading import load_tokenizer
from tombola.tasks import MaskTokens, Split, Task, encode
from tombola.training import TrainSettings, train

NAMES = ["anna", "bela", "cleo", "dora", "emil", "finn"]
PLACES = ["oslo", "rome", "lima", "bonn", "york", "pisa"]
IMP = {"method": "iterative", "step": 0.3}


def questions(count: int, seed: int) -> dict[str, Any]:
    """Where everybody is, in SQuAD's form: each paragraph has a few names and one place."""
    rng = np.random.default_rng(seed)
    paragraphs = []
    for number in range(count):
        words, place = list(rng.choice(NAMES, size=rng.integers(5, 30))), str(rng.choice(PLACES))
        words.insert(int(rng.integers(len(words) + 1)), place)
        context = " ".join(words)
        answer = {"text": place, "answer_start": context.index(place)}
        question = {"id": f"q{number}", "question": f"where is {words[0]}", "answers": [answer]}
        paragraphs.append({"context": context, "qas": [question]})
    return {"version": "1.1", "data": [{"title": "homes", "paragraphs": paragraphs}]}


def passages(count: int, seed: int) -> str:
    """Lines that say one name or place again and again."""
    words = np.random.default_rng(seed).choice(NAMES + PLACES, size=count)
    return "".join(f"{' '.join([word] * 44)}\n" for word in words)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, World]:
    folder = tmp_path_factory.mktemp("kinds")
    tokenizer = word_tokenizer([" ".join([*NAMES, *PLACES, "where is"])])
    tiny("bert", "base", vocab_size=len(tokenizer)).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    for split, count, seed in (("train", 160, 0), ("validation", 40, 1)):
        (folder / f"{split}.json").write_text(json.dumps(questions(count, seed)))
        (folder / f"{split}.raw").write_text(passages(count, seed))
    kinds = {
        "question-answering": (["question", "context"], ["squad_f1", "exact_match"], "json"),
        "masked-lm": (["text"], ["masked_accuracy"], "raw"),
    }
    made = {}
    for kind, (text, metrics, ending) in kinds.items():
        files = {split: f"{split}.{ending}" for split in ("train", "validation")}
        task = {
            "name": kind,
            "version": 1,
            "kind": kind,
            "text": text,
            "metrics": metrics,
            "source": {"files": files},
        }
        (folder / f"{kind}.yaml").write_text(yaml.safe_dump(task))
        made[kind] = World(folder / "model", folder / f"{kind}.yaml")
    return made


def recipe(world: World, **changes: Any) -> dict[str, Any]:
    training = {"epochs": 6, "learning_rate": 5e-3, "batch_size": 16, "max_length": 24, "dropout": 0.0}
    return world.recipe(train=training, search=IMP, draw={"sparsity": 0.3}, **changes)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "metric", "chance"),
    [("question-answering", "squad_f1", 0.2), ("masked-lm", "masked_accuracy", 0.3)],
)
def test_imp_draws_a_ticket_that_has_learned_something(
    worlds: dict[str, World], tmp_path: Path, kind: str, metric: str, chance: float
) -> None:
    raw = recipe(worlds[kind])
    result = tombola.run(raw, output=tmp_path / "out", store=tmp_path / "store")
    (cell,) = result.cells
    score = cell.scores["validation"][metric]
    assert score.value > chance + 3 * score.stderr
    ticket = tombola.Ticket.from_pretrained(tmp_path / "out" / cell.ticket)
    assert (
        len(ticket.mask.units.groups) == 12
    )  # six matrices in each of two layers: these models have no pooler
    assert ticket.mask.removed == int(0.3 * ticket.mask.count + 0.5)
    weights = load_file(ticket.folder / "model.safetensors")
    for name, kept in ticket.mask.items():
        assert (weights[f"bert.{name}.weight"][~kept] == 0).all()
    again = tombola.evaluate(ticket, max_length=24)["validation"][metric]
    assert again.value == score.value
    assert tombola.run(raw, output=tmp_path / "out", store=tmp_path / "store").record.stages.run_now == 0


@pytest.mark.parametrize("kind", ["question-answering", "masked-lm"])
def test_grasp_scores_these_kinds_too(worlds: dict[str, World], tmp_path: Path, kind: str) -> None:
    masks = []
    for store in ("one", "two"):
        raw = {**recipe(worlds[kind]), "search": {"method": "grasp", "batches": 2}, "retrain": None}
        raw["train"] = {**raw["train"], "steps": 2}
        (cell,) = tombola.run(raw, output=tmp_path / store / "out", store=tmp_path / store / "store").cells
        masks.append(Mask.load(tmp_path / store / "out" / cell.ticket / "mask.safetensors"))
    assert masks[0] == masks[1]


def test_a_language_models_mask_is_trained_under_by_another_task(
    worlds: dict[str, World], world: World, tmp_path: Path
) -> None:
    source, target = worlds["masked-lm"], worlds["question-answering"]
    raw = recipe(target)
    raw["search"] = {**IMP, "task": str(source.task)}
    raw["train"] = {**raw["train"], "steps": 4}
    (cell,) = tombola.run(raw, output=tmp_path / "out", store=tmp_path / "store").cells
    own = {**recipe(source), "train": raw["train"]}
    (expected,) = tombola.run(own, output=tmp_path / "own", store=tmp_path / "store").cells
    assert cell.stages.mask == expected.stages.mask
    assert set(cell.scores["validation"]) == {"squad_f1", "exact_match"}


def test_a_model_is_not_judged_on_another_kind_of_task(worlds: dict[str, World], tmp_path: Path) -> None:
    raw = recipe(worlds["masked-lm"], evaluate={"on": ["validation", "sst2"]})
    with pytest.raises(RecipeError, match="'sst2': it is a classification task"):
        tombola.run(raw, output=tmp_path / "out", store=tmp_path / "store")


@pytest.mark.parametrize("step", [2, 4, 6])  # in the first epoch, at its end, in the second
def test_a_resumed_training_asks_for_the_tokens_that_it_would_have_asked_for(
    tmp_path: Path, step: int
) -> None:
    words = [f"w{i}" for i in range(59)]
    texts = [(" ".join(words[i % 5 :: 5]),) for i in range(30)]
    split = Split(Task.named("wikitext"), "train", texts, [None] * 30, [str(i) for i in range(30)], "")
    data = encode(split, TOKENIZER, 12)
    settings = TrainSettings(steps=10, batch_size=9, learning_rate=1e-2, checkpoint_minutes=0)

    def run(folder: str, **options: Any) -> Any:
        model = tiny("bert", "masked-lm")
        collate = MaskTokens(TOKENIZER, seed=1)
        log = train(
            model,
            data,
            settings,
            collate=collate,
            seed=1,
            precision="fp32",
            folder=tmp_path / folder,
            **options,
        )
        return model, log

    whole, log = run("whole")
    with pytest.raises(Killed):
        run("killed", progress=killed_at(step + 1))
    torch.rand(3)
    resumed, rest = run("killed")
    assert rest.resumed_from == step
    assert same_weights(whole, resumed)
    assert rest.curve == log.curve


@pytest.mark.parametrize("kind", ["question-answering", "masked-lm"])
def test_a_plan_counts_the_steps_of_windows_and_blocks(worlds: dict[str, World], kind: str) -> None:
    world = worlds[kind]
    (plan,) = plans(world, train={"epochs": 2, "batch_size": 4, "max_length": 24})
    split = plan.model.data.load()
    steps = 2 * -(-len(encode(split, load_tokenizer(world.model), 24)) // 4)
    assert steps > 1.5 * 2 * len(split) / 4
    assert plan.model.training_steps() == pytest.approx(steps, rel=0.25)


def test_a_rewind_within_the_windows_is_not_refused(worlds: dict[str, World]) -> None:
    world = worlds["question-answering"]  # 160 examples in more than 240 windows: more than 15 steps of 16
    training = {"epochs": 1, "batch_size": 16, "max_length": 24}
    search = {**IMP, "rewind_step": 13}
    (plan,) = plans(world, train=training, search=search, draw={"sparsity": 0.3})
    assert {stage.training_steps() for stage in plan.stages() if getattr(stage, "stop_at", None)} == {13}
