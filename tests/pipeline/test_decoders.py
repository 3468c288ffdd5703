"""Decoders all the way: language modelling from a recipe to a ticket, its scores, and a small model that generates."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

import tombola
from tests.tiny import tiny
from tests.words import decoder_tokenizer
from tests.world import World
from tombola.errors import ModelError, RecipeError
from tombola.masks import Mask

WORDS = [f"w{i}" for i in range(12)]
CHANCE = len(WORDS)


def text(documents: int, seed: int) -> str:
    """Documents that count up from a random word: every word but the first is known from the one before it."""
    rng = np.random.default_rng(seed)
    starts = rng.integers(len(WORDS), size=documents)
    lines = (" ".join(WORDS[(start + step) % len(WORDS)] for step in range(14)) for start in starts)
    return "".join(f"{line}\n\n" for line in lines)


@pytest.fixture(scope="module", params=["llama", pytest.param("gpt2", marks=pytest.mark.slow)])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("decoder")
    tokenizer = decoder_tokenizer([text(40, 0)])
    model = tiny(request.param, "causal-lm", vocab_size=len(tokenizer), tie_word_embeddings=True)
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    for split, documents, seed in (("train", 120, 0), ("validation", 30, 1)):
        (folder / split).write_text(text(documents, seed))
    task = {
        "name": "counting",
        "version": 1,
        "kind": "causal-lm",
        "text": "text",
        "metrics": ["perplexity", "word_perplexity", "byte_perplexity"],
        "settings": {"documents": "blank_lines"},
        "source": {"files": {"train": "train", "validation": "validation"}},
    }
    (folder / "counting.yaml").write_text(yaml.safe_dump(task))
    return World(folder / "model", folder / "counting.yaml")


def recipe(world: World, **changes: Any) -> dict[str, Any]:
    training = {"epochs": 5, "learning_rate": 1e-2, "batch_size": 16, "max_length": 32, "dropout": 0.0}
    return world.recipe(train=training, **changes)


def run(raw: dict[str, Any], folder: Path, store: Path | None = None) -> tombola.Result:
    return tombola.run(raw, output=folder / "out", store=store or folder / "store")


def perplexity(cell: Any) -> float:
    return float(cell.scores["validation"]["perplexity"].value)


GATES = {"train": {"epochs": 4, "learning_rate": 0.05}}
SEARCHES = {
    "magnitude": {"method": "magnitude", "start": "finetuned"},
    "iterative": {"method": "iterative", "step": 0.2},
    "learned": {"method": "learned", "gate": {"kind": "hard_concrete"}, **GATES},
    "learned weights": {"method": "learned", "gate": {"kind": "hard_concrete"}, "weights": True, **GATES},
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_ticket_of_a_decoder_has_learned_the_text(world: World, tmp_path: Path, name: str) -> None:
    raw = recipe(world, search=SEARCHES[name], draw={"sparsity": 0.2})
    (cell,) = run(raw, tmp_path).cells
    assert perplexity(cell) < CHANCE / 2
    ticket = tombola.Ticket.from_pretrained(tmp_path / "out" / cell.ticket)
    assert ticket.mask.removed == int(0.2 * ticket.mask.count + 0.5)
    weights = load_file(ticket.folder / "model.safetensors")
    prefix = "transformer" if "transformer.wte.weight" in weights else "model"
    for tensor, kept in ticket.mask.tensors(ticket.model()).items():
        assert (weights[f"{prefix}.{tensor}"][~kept] == 0).all()
        assert not any(part in tensor for part in ("wte", "embed", "lm_head"))
    assert "lm_head.weight" not in weights  # it is tied to the embeddings, and stays so
    again = tombola.evaluate(ticket, max_length=32)["validation"]["perplexity"]
    assert again.value == pytest.approx(perplexity(cell), rel=1e-5)


@pytest.mark.thorough
def test_trainings_of_encoders_serve_decoders_too(world: World, tmp_path: Path) -> None:
    """Distillation, selective updates and R-Drop, each under a mask that it keeps."""
    raw = recipe(
        world,
        search=SEARCHES["magnitude"],
        draw={"sparsity": 0.4},
        variants={
            "dense": {"search": None},
            "one shot": {"retrain": None},
            "plain": {"retrain": {"start": "finetuned"}},
            "distilled": {"retrain": {"start": "finetuned", "distill": {"weight": 1.0, "hidden": 0.5}}},
            "selective": {"retrain": {"start": "finetuned", "select": {"kind": "second", "upper": 80}}},
            "r_drop": {"retrain": {"start": "finetuned", "r_drop": 1.0, "dropout": 0.1}},
        },
    )
    result = run(raw, tmp_path)
    found = {cell.variant: cell for cell in result.cells}
    assert set(found) == set(raw["variants"])
    for name in ("plain", "distilled", "selective", "r_drop"):
        assert perplexity(found[name]) < perplexity(found["one shot"])
        mask = Mask.load(tmp_path / "out" / found[name].ticket / "mask.safetensors")
        weights = load_file(tmp_path / "out" / found[name].ticket / "model.safetensors")
        for tensor, kept in mask.tensors(AutoModelForCausalLM.from_pretrained(world.model)).items():
            own = next(value for key, value in weights.items() if key.endswith(tensor))
            assert (own[~kept] == 0).all()


@pytest.mark.thorough
def test_the_step_with_the_lowest_perplexity_is_kept(world: World, tmp_path: Path) -> None:
    raw = recipe(world, data={"holdout": 0.2}, evaluate={"every": "epoch", "best": "holdout"})
    raw["train"] |= {"schedule": "constant", "learning_rate": 0.05, "epochs": 8}
    (cell,) = run(raw, tmp_path).cells
    points = [point.scores["perplexity"].value for point in cell.course["validation"]]
    assert len(points) == 8
    assert cell.chosen is not None
    store = tmp_path / "store" / cell.stages.model
    course = yaml.safe_load((store / "course.json").read_text())
    choices = {point["step"]: point["choice"]["value"] for point in course["points"]}
    assert cell.chosen.step == min(choices, key=lambda step: choices[step])
    assert perplexity(cell) == next(
        point.scores["perplexity"].value
        for point in cell.course["validation"]
        if point.step == cell.chosen.step
    )


@pytest.mark.parametrize(("layout", "sparsity"), [("free", 0.5), ("uniform", 0.2)])
def test_a_small_decoder_is_cut_out_trained_and_generates(
    world: World, tmp_path: Path, layout: str, sparsity: float
) -> None:
    raw = recipe(
        world,
        search={"method": "importance", "units": "neuron", "batches": 2, "start": "finetuned"},
        draw={"sparsity": sparsity, "layout": layout},
        retrain={"start": "finetuned", "shrink": True, "distill": {"weight": 0.5}},
        measure={"batch_sizes": [1]},
    )
    (cell,) = run(raw, tmp_path).cells
    assert perplexity(cell) < CHANCE / 2
    assert cell.measured is not None
    assert cell.measured.ticket.parameters < cell.measured.dense.parameters
    folder = tmp_path / "out" / cell.ticket
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    prompt = tokenizer("w3 w4 w5 ", return_tensors="pt")
    with torch.no_grad():
        tokens = model.generate(**prompt, max_new_tokens=8, do_sample=False)
    assert tokens.shape[1] > prompt["input_ids"].shape[1]


def test_an_encoder_is_no_causal_language_model(world: World, tmp_path: Path) -> None:
    tiny("deberta-v2", "base").save_pretrained(tmp_path / "encoder")
    AutoTokenizer.from_pretrained(world.model).save_pretrained(tmp_path / "encoder")
    raw = {**recipe(world), "model": str(tmp_path / "encoder")}
    with pytest.raises(ModelError, match="no causal-lm model of the type 'deberta-v2'"):
        run(raw, tmp_path)


def quiz(world: World, folder: Path, kind: str) -> World:
    """What comes after a word: as a choice of two, or as a label that is written out."""
    rng = np.random.default_rng(3)
    rows = []
    for start in rng.integers(len(WORDS), size=160).tolist():
        after, other = (WORDS[(start + step) % len(WORDS)] for step in (1, int(rng.integers(2, len(WORDS)))))
        label = int(rng.integers(2))
        choices = [other, after] if label else [after, other]
        answer = {"choices": choices, "label": label} if kind == "multiple-choice" else {"label": start % 2}
        rows.append(json.dumps({"word": WORDS[start], **answer}) + "\n")
    for split, part in (("train", rows[:120]), ("validation", rows[120:])):
        (folder / f"{split}.jsonl").write_text("".join(part))
    task = {
        "name": "quiz",
        "version": 1,
        "kind": kind,
        "text": "word",
        "metrics": ["accuracy"],
        "settings": {"prompt": "w0 {word}"},
        "source": {"files": {"train": "train.jsonl", "validation": "validation.jsonl"}},
    }
    if kind == "classification":
        task["labels"] = ["even", "odd"]
        task["settings"] |= {"by": "likelihood", "answers": ["w1 w2", "w3"]}
    (folder / "quiz.yaml").write_text(yaml.safe_dump(task))
    return World(world.model, folder / "quiz.yaml")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["multiple-choice", "classification"])
def test_answers_by_likelihood_are_learned_and_pruned(world: World, tmp_path: Path, kind: str) -> None:
    raw = recipe(quiz(world, tmp_path, kind), search=SEARCHES["magnitude"], draw={"sparsity": 0.2})
    raw["variants"] = {"untrained": {"search": None, "train": {"epochs": 0}}, "ticket": {}}
    raw["train"] |= {"epochs": 12}
    result = run(raw, tmp_path)
    before, after = (cell.scores["validation"]["accuracy"].value for cell in result.cells)
    assert after > 0.9
    assert after > before


def test_what_needs_a_head_is_refused_by_likelihood(world: World, tmp_path: Path) -> None:
    own = quiz(world, tmp_path, "classification")
    with pytest.raises(
        RecipeError, match="attack: quiz is scored by likelihood, but attacks need a classification head"
    ):
        run(recipe(own, attack={"recipes": ["deepwordbug"], "n": 4}), tmp_path)
    raw = recipe(own, bias={"method": "shallow"})
    raw["train"] |= {"loss": {"kind": "poe"}}
    with pytest.raises(
        RecipeError, match="loss: poe needs a classification head, but quiz is scored by likelihood"
    ):
        run(raw, tmp_path)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("classification", "quiz is scored by likelihood, with the answers as part of the texts, so"),
        ("multiple-choice", "quiz is a multiple-choice task, whose labels refer to tokens of the texts, so"),
    ],
)
def test_texts_that_contain_the_answers_stay_as_they_are(
    world: World, tmp_path: Path, kind: str, reason: str
) -> None:
    own = quiz(world, tmp_path, kind)
    changes: dict[str, dict[str, Any]] = {
        "augment": {"train": {"augment": {"of": ["typos"]}}},
        "adversary": {"train": {"adversary": {"kind": "swaps"}}},
        "defend": {"defend": ["unicode"]},
    }
    for key, changed in changes.items():
        with pytest.raises(RecipeError, match=f"{key}: {reason}"):
            run(own.recipe(**changed), tmp_path)


def test_epochs_of_a_score_curve_are_those_of_the_blocks(world: World, tmp_path: Path) -> None:
    """How many blocks a text packs into is known once it is tokenised; before, a plan estimates it."""
    raw = recipe(world, evaluate={"every": "epoch"})
    (cell,) = run({**raw, "train": {**raw["train"], "epochs": 2}}, tmp_path).cells
    assert [point.epoch for point in cell.course["validation"]] == [1, 2]
