"""Answers scored by hand, and the choice of an answer against trying every pair of tokens."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.modeling_outputs import QuestionAnsweringModelOutput

from tests.tiny import tiny
from tests.words import word_tokenizer
from tombola.errors import ModelError
from tombola.evaluation import spans
from tombola.evaluation.answers import best, normalised, word_f1
from tombola.evaluation.evaluate import evaluate_split, predict_split
from tombola.evaluation.metrics import metrics, score
from tombola.evaluation.spans import best_pair, predict_spans
from tombola.tasks import Answers, Split, Task, collate_of, encode, unlabelled

WORDS = [f"w{i}" for i in range(59)]
TOKENIZER = word_tokenizer([" ".join(WORDS)])


def gold(*texts: str) -> Answers:
    return Answers(texts, (0, 1) if texts else None)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The  Cat's hat!", "cats hat"),
        ("an apple, a day", "apple day"),
        ("theatre banana", "theatre banana"),
        ("U.S.A.", "usa"),
        ("“The” end", "“ ” end"),  # only ASCII punctuation goes
        ("\tThe\n", ""),
        ("well-known", "wellknown"),
    ],
)
def test_normalisation_is_the_official_one(text: str, plain: str) -> None:
    assert normalised(text) == plain


@pytest.mark.parametrize(
    ("predicted", "answers", "exact", "f1"),
    [
        ("the Denver Broncos!", gold("Denver Broncos"), 1, 1),
        ("Denver", gold("Denver Broncos"), 0, 2 / 3),
        ("Denver Denver", gold("Denver Broncos"), 0, 1 / 2),  # a word counts as often as both have it
        ("in the city of Denver", gold("Paris", "Denver, Colorado", "city of denver"), 0, 6 / 7),
        ("Denver", gold("Paris", "denver"), 1, 1),
        ("Rome", gold("Paris"), 0, 0),
        ("", gold("Paris"), 0, 0),
        ("", gold(), 1, 1),
        ("Paris", gold(), 0, 0),
        ("the", gold("a"), 1, 0),  # nothing is left of either: the script's F1 is 0
    ],
)
def test_exact_match_and_f1_by_hand(predicted: str, answers: Answers, exact: float, f1: float) -> None:
    assert metrics["exact_match"]([predicted], [answers]).value == exact
    assert metrics["squad_f1"]([predicted], [answers]).value == pytest.approx(f1)


def test_scores_have_their_errors_over_questions() -> None:
    predicted = ["Denver", "Rome", "blue whale", "nine"]
    answers = [gold("Denver"), gold("Paris"), gold("whale"), gold("nine")]
    scores = score(Task.named("squad"), predicted, answers)
    assert list(scores) == ["squad_f1", "exact_match"]
    values = np.array([1, 0, 2 / 3, 1])
    assert scores["squad_f1"].value == pytest.approx(values.mean())
    assert scores["squad_f1"].stderr == pytest.approx(values.std() / 2)
    assert (scores["exact_match"].value, scores["exact_match"].stderr, scores["exact_match"].n) == (
        0.5,
        0.25,
        4,
    )


@given(st.text("ab the.", max_size=12), st.text("ab the.", max_size=12))
def test_f1_is_symmetric_and_1_only_for_the_same_words(one: str, two: str) -> None:
    assert word_f1(one, two) == word_f1(two, one)
    same_words = sorted(normalised(one).split()) == sorted(normalised(two).split()) != []
    assert (word_f1(one, two) == 1) == same_words
    assert best(word_f1, one, gold(two, one)) == (1 if normalised(one) else 0)


@given(st.integers(1, 70), st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_the_best_pair_is_that_of_trying_all(length: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    start, end = rng.normal(size=(2, length))
    inside = rng.random(length) < 0.8
    inside[rng.integers(length)] = True
    starts = sorted(np.flatnonzero(inside), key=lambda i: -start[i])[:20]
    ends = sorted(np.flatnonzero(inside), key=lambda i: -end[i])[:20]
    pairs = {(i, j): start[i] + end[j] for i in starts for j in ends if i <= j < i + 30}
    first, last, found = best_pair(start, end, inside)
    if pairs:
        assert (first, last) == max(pairs, key=pairs.__getitem__)
        assert found == max(pairs.values())
    else:
        assert found == -np.inf


class Pointer(torch.nn.Module):
    """Stands for a model: it finds the tokens `start` and `end`, with the same confidence in every window."""

    device = torch.device("cpu")

    def __init__(self, start: str, end: str, silence: float = 0.0) -> None:
        super().__init__()
        self.config = tiny("bert", "question-answering").config
        self.ids = TOKENIZER.convert_tokens_to_ids([start, end])
        self.silence = silence

    def forward(self, input_ids: torch.Tensor, **_: torch.Tensor) -> QuestionAnsweringModelOutput:
        start, end = (5.0 * (input_ids == token) for token in self.ids)
        start[:, 0] = self.silence
        return QuestionAnsweringModelOutput(start_logits=start, end_logits=end)


def split_of(*examples: tuple[str, str, Answers], task: str = "squad") -> Split:
    texts = [(asked, context) for asked, context, _ in examples]
    ids = [str(i) for i in range(len(examples))]
    return Split(Task.named(task), "validation", texts, [labels for *_, labels in examples], ids, "")


@pytest.mark.parametrize("max_length", [384, 32, 24])
def test_an_answer_in_any_window_comes_back_as_exact_text(max_length: int) -> None:
    words = [WORDS[i] for i in range(10, 30)] * 2 + ["W7,", "w8", "w9"] + WORDS[10:20]
    split = split_of(
        ("w1 w7", " ".join(words), gold("w7 w8  w9")),
        ("w7", "w1 w2", gold("w1 w2")),
        ("w3", "w7 w9", gold("w9")),
    )
    result = evaluate_split(Pointer("w7", "w9"), TOKENIZER, split, max_length)  # type: ignore[arg-type]
    context = split.texts[0][1]
    assert context[slice(*result.predictions[0])] == "W7, w8 w9"
    assert split.texts[2][1][slice(*result.predictions[2])] == "w7 w9"
    assert result.scores["exact_match"].value == pytest.approx(1 / 3)


@pytest.mark.parametrize(("silence", "answered"), [(9.9, True), (10.1, False)])
def test_silence_wins_by_a_threshold_of_zero_where_questions_may_be_unanswerable(
    silence: float, answered: bool
) -> None:
    question = ("w1", "w2 w7 w8 w9", gold())
    spans = {}
    for task in ("squad", "squad_v2"):
        split = split_of(question, task=task)
        windows = encode(split, TOKENIZER, 64)
        spans[task] = predict_spans(
            Pointer("w7", "w9", silence),  # type: ignore[arg-type]
            windows,  # type: ignore[arg-type]
            collate_of(split.task, TOKENIZER),
            unanswerable=split.task.unanswerable,
        ).tolist()
    assert spans["squad"] == [[3, 11]]
    assert spans["squad_v2"] == ([[3, 11]] if answered else [[0, 0]])


def test_an_answer_has_no_blank_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """ModernBERT's tokens, and those of other byte-level vocabularies, begin with the blank before their word."""
    monkeypatch.setattr(spans, "predict_spans", lambda *_, **__: np.array([[2, 5]]))
    model, asked = tiny("bert", "question-answering"), [("w1", "w2 w3")]
    (answer,) = predict_split(model, TOKENIZER, unlabelled(Task.named("squad"), asked))
    assert answer.label == "w3"


def test_answers_do_not_depend_on_the_batches() -> None:
    rng = np.random.default_rng(0)
    examples = [
        (" ".join(rng.choice(WORDS, 4)), " ".join(rng.choice(WORDS, rng.integers(5, 90))), gold("w1"))
        for _ in range(12)
    ]
    split, model = split_of(*examples), tiny("bert", "question-answering")
    windows, collate = encode(split, TOKENIZER, 48), collate_of(split.task, TOKENIZER)
    assert len(windows) > 20
    one, many = (predict_spans(model, windows, collate, batch_tokens=size) for size in (1, 400))  # type: ignore
    np.testing.assert_array_equal(one, many)
    assert (one[:, 1] > one[:, 0]).all()


def test_outputs_that_are_no_numbers_are_refused() -> None:
    split = split_of(("w1", "w2 w7", gold("w7")))
    with pytest.raises(ModelError, match="NaN or infinite"):
        evaluate_split(Pointer("w7", "w7", float("nan")), TOKENIZER, split)  # type: ignore[arg-type]
