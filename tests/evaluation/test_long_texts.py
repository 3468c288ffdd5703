"""Texts longer than a model reads: counted, and with a stride read whole, as plain PyTorch reads their windows."""

from pathlib import Path

import numpy as np
import pytest
import torch

import tombola
from tests.evaluation.test_label_sets import TASK as FEELINGS
from tests.tiny import tiny
from tests.words import python_tokenizer, word_tokenizer
from tests.world import World
from tombola.errors import DataError, TombolaError
from tombola.evaluation.evaluate import evaluate_split, predict_split
from tombola.evaluation.long_texts import LongTexts
from tombola.tasks import Task, encode, unlabelled
from tombola.tasks.text_windows import window_starts

WORDS = ["good", "bad", "fine", "film", "plot", "where", "is", "anna", "oslo", "rome"]
TOKENIZER = word_tokenizer([" ".join(WORDS)])
LONG = " ".join(WORDS[i * 7 % 10] for i in range(17))
SHORT = "good film"
LIMIT = 8  # six words and two special tokens


def model_for(task: Task, **config):
    names = dict(enumerate(task.labels or ()))
    heads = {"id2label": names, "label2id": {name: number for number, name in names.items()}} if names else {}
    return tiny("bert", vocab_size=len(TOKENIZER), **heads, **config)


def by_hand(model, starts, share):
    """The weighted mean of what the model says of the windows of LONG."""
    words = LONG.split()
    holders = np.zeros(len(words))
    for start in starts:
        holders[start : start + 6] += 1
    total = 0
    for start in starts:
        text = " ".join(words[start : start + 6])
        with torch.no_grad():
            row = model(**TOKENIZER(text, return_tensors="pt")).logits[0].double()
        total = total + share(row) * float((1 / holders[start : start + 6]).sum())
    return (total / len(words)).numpy()


def predict(model, task, rows, stride):
    long = LongTexts(stride)
    return predict_split(model, TOKENIZER, unlabelled(task, rows), max_length=LIMIT, long=long), long


@pytest.mark.parametrize(("stride", "starts"), [(6, [0, 6, 11]), (4, [0, 4, 8, 11]), (1, list(range(12)))])
def test_classes_are_the_mean_probabilities_of_windows(stride, starts):
    task = Task.named("sst2")
    model = model_for(task)
    found, long = predict(model, task, [SHORT, LONG], stride)
    expected = by_hand(model, starts, lambda row: row.softmax(-1))
    np.testing.assert_allclose(list(found[1].probabilities.values()), expected, atol=1e-6)
    cut, _ = predict(model, task, [SHORT, LONG], None)
    assert found[0].probabilities == pytest.approx(cut[0].probabilities, abs=1e-6)
    assert found[1] != cut[1]
    assert long.counts == {"sst2/unlabelled": (1, 2, LIMIT)}


def test_numbers_and_label_sets_are_means_too():
    numbers = Task.named("stsb").model_copy(update={"text": ["sentence"], "attackable": ["sentence"]})
    model = model_for(numbers, num_labels=1)
    found, _ = predict(model, numbers, [LONG], 4)
    np.testing.assert_allclose(found[0].label, by_hand(model, [0, 4, 8, 11], lambda row: row)[0], atol=1e-5)
    model = model_for(FEELINGS)
    found, _ = predict(model, FEELINGS, [LONG], 4)
    expected = by_hand(model, [0, 4, 8, 11], lambda row: row.sigmoid())
    np.testing.assert_allclose(list(found[0].probabilities.values()), expected, atol=1e-6)


def test_of_a_pair_the_longer_text_is_read_in_windows():
    task = Task.named("rte")
    model = model_for(task)
    (found,), _ = predict(model, task, [(SHORT, LONG)], 3)
    words, starts = LONG.split(), window_starts(17, 3, 3)
    assert starts == [0, 3, 6, 9, 12, 14]
    weights = [3, 3, 3, 3, 2.5, 2.5]
    total = 0
    for start, weight in zip(starts, weights, strict=True):
        pair = TOKENIZER(SHORT, " ".join(words[start : start + 3]), return_tensors="pt")
        assert pair["input_ids"].shape[1] == LIMIT
        with torch.no_grad():
            total = total + weight / 17 * model(**pair).logits[0].double().softmax(-1)
    np.testing.assert_allclose(list(found.probabilities.values()), total.numpy(), atol=1e-6)


def test_a_tokenizer_written_in_python_makes_windows_too(tmp_path):
    tokenizer = python_tokenizer(tmp_path)
    split = unlabelled(Task.named("rte"), [("c d", "f e d c b a f e d")])
    windows = LongTexts(3).take(split, tokenizer, encode(split, tokenizer, 9), 9)
    tokens = [tokenizer.decode(windows[i]["input_ids"]) for i in range(len(windows))]
    assert tokens == [f"<s> c d </s> </s> {text} </s>" for text in ("f e d", "c b a", "f e d")]


def test_scores_are_those_of_whole_texts():
    task = Task.named("sst2")
    model = model_for(task)
    split = unlabelled(task, [SHORT, LONG, LONG])
    long = LongTexts(4)
    found = evaluate_split(model, TOKENIZER, split, max_length=LIMIT, long=long)
    assert found.predictions.shape == (3, 2)
    expected = by_hand(model, [0, 4, 8, 11], lambda row: row.softmax(-1))
    np.testing.assert_allclose(np.exp(found.predictions[1]), expected, atol=1e-6)
    assert found.scores["accuracy"].n == 3


@pytest.mark.parametrize(("length", "starts"), [(7, [0, 1]), (12, [0, 4, 6]), (14, [0, 4, 8]), (6, [0])])
def test_windows_cover_a_text_and_are_full(length, starts):
    assert window_starts(length, 6, 4) == starts


def test_a_stride_that_skips_tokens_or_makes_no_sense_is_refused():
    task = Task.named("sst2")
    with pytest.raises(DataError, match="A stride of 7 tokens would skip parts of a text"):
        predict(model_for(task), task, [LONG], 7)
    with pytest.raises(TombolaError, match="stride: takes 1 token or more, not 0"):
        LongTexts(0).check(task)
    for name, advice in (
        ("squad", "set doc_stride"),
        ("conll2003", "split long sentences"),
        ("wikitext", "leave"),
    ):
        with pytest.raises(TombolaError, match=f"stride: only works for classification.*{advice}"):
            LongTexts(2).check(Task.named(name))
        LongTexts().check(Task.named(name))


@pytest.fixture(scope="module")
def ticket(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    result = tombola.run(
        world.recipe(search={"method": "magnitude"}), output=folder / "out", store=folder / "store"
    )
    return folder / "out" / str(result.cells[0].ticket)


def test_verbs_say_once_how_many_texts_are_longer(ticket, caplog):
    texts = ["the film was lovely", "a plot " * 20]
    tombola.predict(ticket, texts)
    assert [one.message for one in caplog.records] == [
        "texts longer than 16 tokens are truncated: 1 of 2; --stride 8 reads them completely, in windows"
    ]
    caplog.clear()
    tombola.evaluate(ticket, on=["validation", "other"], max_length=6, stride=2)
    (told,) = (one.message for one in caplog.records)
    assert told.startswith("texts longer than 6 tokens were read in windows, 2 tokens apart: ")
    assert " in tiny/validation, " in told
    assert told.endswith(" in tiny/other")
    caplog.clear()
    tombola.evaluate(ticket, max_length=64)
    assert caplog.records == []


def test_an_attack_says_first_how_many_of_its_texts_are_cut(ticket, caplog):
    examples = [("the film was lovely", 1), ("a plot " * 20, 0), ("a scene " * 40, 1)]
    told: list[str] = []

    def progress(done, whole, figures):
        told.extend(one.message for one in caplog.records)
        caplog.clear()

    tombola.attack(ticket, "deepwordbug", examples=examples, progress=progress)
    assert told == [
        "texts longer than 16 tokens are truncated: 2 of 3; changes after that point have no effect; "
        "use --max-length 64 to read more"
    ]
    report = tombola.attack(ticket, "deepwordbug", examples=examples, max_length=1000)
    assert len(report.examples) == 3
    assert [one.message for one in caplog.records] == [
        "max_length: 1,000 tokens exceed the model's 64 positions: texts are truncated to 64",
        "texts longer than 64 tokens are truncated: 1 of 3; changes after that point have no effect",
    ]
    caplog.clear()
    tombola.attack(ticket, "deepwordbug", n=4, max_length=32)
    assert caplog.records == []


def test_a_max_length_beyond_the_positions_is_said(ticket, caplog):
    tombola.evaluate(ticket, max_length=1000)
    assert (
        "max_length: 1,000 tokens exceed the model's 64 positions: texts are truncated to 64" in caplog.text
    )
    for length in (0, 1, 2):  # the tokenizer would not truncate to 1
        with pytest.raises(TombolaError, match=f"must be greater than 2, .* not {length}"):
            tombola.evaluate(ticket, max_length=length)
