"""Likelihoods of answers against plain PyTorch, and what is made of them."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.tiny import tiny
from tests.words import decoder_tokenizer
from tombola.evaluation.evaluate import constant_score, evaluate_split, predict_split
from tombola.evaluation.metrics import metrics
from tombola.tasks import Split, Task

WORDS = [f"w{i}" for i in range(50)]
TOKENIZER = decoder_tokenizer([f"{word} " for word in WORDS])
QUIZ = {
    "name": "quiz",
    "version": 1,
    "kind": "multiple-choice",
    "text": ["question"],
    "metrics": ["accuracy", "accuracy_norm"],
    "source": {"files": {"train": "rows.jsonl"}},
}


def questions(count: int = 20) -> Split:
    """Questions with two to four answers of one to three words."""
    rng = np.random.default_rng(0)

    def words(size: int) -> str:
        return " ".join(rng.choice(WORDS, size=size))

    texts = [
        (words(4), *(words(int(rng.integers(1, 4))) for _ in range(int(rng.integers(2, 5)))))
        for _ in range(count)
    ]
    labels = [int(rng.integers(len(one) - 1)) for one in texts]
    return Split(Task.model_validate(QUIZ), "train", texts, labels, [*map(str, range(count))], "")


@torch.no_grad()
def likelihood(model: Any, prompt: str, answer: str) -> float:
    ids, opening = (TOKENIZER(text)["input_ids"] for text in (f"{prompt} {answer}", prompt))
    scores = model(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)
    return sum(scores[place - 1, ids[place]].item() for place in range(len(opening), len(ids)))


def test_both_accuracies_are_those_of_plain_pytorch() -> None:
    model, split = tiny("llama", "causal-lm"), questions()
    plain, per_character = [], []
    for (prompt, *answers), label in zip(split.texts, split.labels, strict=True):
        found = [likelihood(model, prompt, answer) for answer in answers]
        plain.append(int(np.argmax(found)) == label)
        by_length = [one / len(answer) for one, answer in zip(found, answers, strict=True)]
        per_character.append(int(np.argmax(by_length)) == label)
    assert plain != per_character
    scores = evaluate_split(model, TOKENIZER, split, 64).scores
    assert scores["accuracy"].value == pytest.approx(np.mean(plain))
    assert scores["accuracy_norm"].value == pytest.approx(np.mean(per_character))
    assert scores["accuracy"].n == len(split)


def test_predictions_hold_the_likelihood_of_every_answer() -> None:
    model, split = tiny("gpt2", "causal-lm"), questions(6)
    found = evaluate_split(model, TOKENIZER, split, 64).predictions
    for row, (prompt, *answers) in zip(found, split.texts, strict=True):
        expected = [likelihood(model, prompt, answer) for answer in answers]
        np.testing.assert_allclose(row[: len(answers), 0], expected, rtol=1e-4)
        assert row[: len(answers), 1].tolist() == [len(answer) for answer in answers]
        assert (row[len(answers) :, 0] < -1e20).all()
    for said, (_, *answers) in zip(predict_split(model, TOKENIZER, split, 64), split.texts, strict=True):
        assert said.label in answers
        assert sum(said.probabilities.values()) == pytest.approx(1)


def test_the_best_place_for_all_is_the_constant() -> None:
    split = questions()
    counts = np.bincount(split.labels)
    assert constant_score(split) == counts.max() / len(split)


def test_a_longer_answer_may_win_per_character() -> None:
    choices = np.array([[[-2.0, 1.0], [-6.0, 12.0]]])
    assert metrics["accuracy"](choices, np.array([0])).value == 1
    assert metrics["accuracy_norm"](choices, np.array([1])).value == 1


def test_classification_by_likelihood_scores_the_answers_of_labels() -> None:
    model = tiny("llama", "causal-lm")
    settings = {"by": "likelihood", "prompt": "{question} w1", "answers": ["w2 w3", "w4"]}
    raw = {**QUIZ, "kind": "classification", "labels": ["no", "yes"], "metrics": ["accuracy", "mcc"]}
    rng = np.random.default_rng(1)
    texts = [(" ".join(rng.choice(WORDS, size=5)),) for _ in range(30)]
    labels = rng.integers(2, size=30).tolist()
    split = Split(
        Task.model_validate({**raw, "settings": settings}), "train", texts, labels, [*map(str, range(30))], ""
    )
    found = evaluate_split(model, TOKENIZER, split, 64)
    expected = [[likelihood(model, f"{text} w1", answer) for answer in ("w2 w3", "w4")] for (text,) in texts]
    np.testing.assert_allclose(found.predictions, expected, rtol=1e-4)
    assert found.scores["accuracy"].value == np.mean(np.argmax(expected, axis=1) == labels)
    said = predict_split(model, TOKENIZER, split, 64)
    assert [one.label for one in said] == [("no", "yes")[place] for place in np.argmax(expected, axis=1)]
