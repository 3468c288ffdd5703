"""Entities as CoNLL's script counts them, on cases worked out by hand, with errors over sentences."""

import numpy as np
import pytest
import torch

from tests.tasks.test_token_classification import piece_tokenizer, tagged_split
from tests.tiny import tiny
from tombola.evaluation.evaluate import evaluate_split
from tombola.evaluation.tags import predict_tags
from tombola.tasks import Tagged, Task, collate_of, encode
from tombola.tasks.metrics import metrics

TRUE = ["O B-PER I-PER O B-LOC", "B-ORG O", "O O O"]
CASES = {
    "all right": (TRUE, (1.0, 1.0, 1.0, 1.0)),
    # PER is found, LOC has another type, ORG is missed, one is made up: 1 of 3 predicted, 1 of 3 true
    "some right": (["O B-PER I-PER O B-ORG", "O O", "O B-PER O"], (1 / 3, 1 / 3, 1 / 3, 7 / 10)),
    # half of a name is not the name: 1 predicted and 3 true, none right
    "too short": (["O B-PER O O O", "O O", "O O O"], (0.0, 0.0, 0.0, 7 / 10)),
    # a name cut in two: PER, PER, LOC, ORG predicted, LOC and ORG right: P 2/4, R 2/3, F 4/7
    "in two": (["O B-PER B-PER O B-LOC", "B-ORG O", "O O O"], (4 / 7, 0.5, 2 / 3, 9 / 10)),
    # I- without B- begins an entity all the same, as in CoNLL's script and seqeval
    "no beginning": (["O I-PER I-PER O I-LOC", "I-ORG O", "O O O"], (1.0, 1.0, 1.0, 7 / 10)),
    "nothing": (["O O O O O", "O O", "O O O"], (0.0, 0.0, 0.0, 6 / 10)),
}
NAMES = ["entity_f1", "entity_precision", "entity_recall", "token_accuracy"]


@pytest.mark.parametrize(("predicted", "values"), CASES.values(), ids=CASES)
def test_by_hand(predicted: list[str], values: tuple[float, ...]) -> None:
    ours, theirs = [one.split() for one in predicted], [one.split() for one in TRUE]
    for name, value in zip(NAMES, values, strict=True):
        found = metrics[name](ours, theirs)
        assert found.value == pytest.approx(value), name
        assert (found.n, found.method) == (3, "bootstrap of 500")


def test_no_entity_anywhere_is_zero_not_an_error() -> None:
    found = metrics["entity_f1"]([["O"], ["O"]], [["O"], ["O"]])
    assert (found.value, found.stderr) == (0.0, 0.0)


def test_the_error_is_that_of_resampled_sentences() -> None:
    """Recall over sentences of one entity each is a share, whose error is known."""
    rng = np.random.default_rng(7)
    hits = rng.random(400) < 0.7
    predicted = [["B-X"] if hit else ["O"] for hit in hits]
    found = metrics["entity_recall"](predicted, [["B-X"]] * 400)
    share = hits.mean()
    assert found.value == pytest.approx(share)
    assert found.stderr == pytest.approx(np.sqrt(share * (1 - share) / 400), rel=0.1)
    # words of a sentence stand or fall together, which an error over words would not see
    together = metrics["token_accuracy"]([["O"] * 9 if hit else ["X"] * 9 for hit in hits], [["O"] * 9] * 400)
    assert together.stderr == pytest.approx(found.stderr, rel=0.15)


SENTENCES = [
    (["john", "smiths", "saw", "new", "york", "."], [1, 2, 0, 5, 6, 0]),
    (["smith", "."], [1, 0]),
    (["saw", "john"], [0, 1]),
]


def model_and_split(seed: int = 0):  # type: ignore[no-untyped-def]
    task = Task.named("conll2003")
    labels = dict(enumerate(task.labels or ()))
    model = tiny(
        "bert", "token-classification", seed=seed, id2label=labels, label2id={n: i for i, n in labels.items()}
    )
    return model, tagged_split(SENTENCES)


def test_an_evaluation_equals_a_plain_loop_over_words() -> None:
    model, split = model_and_split()
    tokenizer = piece_tokenizer("wordpiece")
    result = evaluate_split(model, tokenizer, split, 32)
    guesses = []
    for words, _ in SENTENCES:
        batch = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            logits = model(**batch).logits[0]
        owners = batch.word_ids(0)
        guesses.append([int(logits[owners.index(number)].argmax()) for number in range(len(words))])
    assert result.predictions[:, 1].tolist() == [guess for sentence in guesses for guess in sentence]
    assert result.predictions[:, 2].tolist() == [tag for _, tags in SENTENCES for tag in tags]
    assert result.predictions[:, 0].tolist() == [0] * 6 + [1, 1, 2, 2]
    right = np.mean(result.predictions[:, 1] == result.predictions[:, 2])
    assert result.scores["token_accuracy"].value == pytest.approx(right)
    assert result.notes == []


def test_batches_and_sides_of_padding_change_nothing() -> None:
    model, split = model_and_split()
    tokenizer = piece_tokenizer("wordpiece")
    data = encode(split, tokenizer, 32)
    assert isinstance(data, Tagged)
    reference = predict_tags(model, data, collate_of(split.task, tokenizer), batch_tokens=1)
    found = predict_tags(model, data, collate_of(split.task, tokenizer), batch_tokens=1000)
    for one, other in zip(reference, found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_words_behind_the_last_token_count_as_missed() -> None:
    model, split = model_and_split()
    with torch.no_grad():
        model.classifier.weight.zero_()
        model.classifier.bias.copy_(torch.eye(9)[0])  # O everywhere
    result = evaluate_split(model, piece_tokenizer("wordpiece"), split, 5)
    assert result.predictions[:6, 1].tolist() == [0, 0, -1, -1, -1, -1]
    assert result.scores["token_accuracy"].value == pytest.approx(2 / 10)  # the O behind the end is no hit
    assert "4 of 10 words of conll2003/train are beyond the last token" in result.notes[0]


def test_a_models_own_order_of_tags_is_followed() -> None:
    model, split = model_and_split()
    tokenizer = piece_tokenizer("wordpiece")
    expected = evaluate_split(model, tokenizer, split, 32)
    order = [3, 1, 2, 0, 8, 7, 6, 5, 4]
    names = split.task.labels or []
    with torch.no_grad():
        model.classifier.weight.copy_(model.classifier.weight[order].clone())
        model.classifier.bias.copy_(model.classifier.bias[order].clone())
    model.config.id2label = {place: names[number] for place, number in enumerate(order)}
    model.config.label2id = {name: place for place, name in model.config.id2label.items()}
    found = evaluate_split(model, tokenizer, split, 32)
    np.testing.assert_array_equal(found.predictions, expected.predictions)
    assert "rearranged by name" in found.notes[0]
