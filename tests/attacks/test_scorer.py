import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny import tiny
from tests.words import decoder_tokenizer, word_tokenizer
from tombola.attacks.scorer import STEP, Scorer, near_edge, near_tie, probabilities
from tombola.errors import ModelError

WORDS = ["film", "plot", "good", "bad", "warm", "cold", "actor", "scene", "story", "end", "fine", "dull"]


def random_texts(count, seed, columns=1):
    rng = np.random.default_rng(seed)
    draw = lambda: " ".join(rng.choice(WORDS, size=rng.integers(1, 20)))  # noqa: E731
    return [tuple(draw() for _ in range(columns)) for _ in range(count)]


@pytest.fixture(scope="module")
def scorer():
    tokenizer = word_tokenizer(WORDS)
    return Scorer(tiny("bert", vocab_size=len(tokenizer), num_labels=3), tokenizer, max_length=40)


@pytest.mark.parametrize("columns", [1, 2])
def test_scores_are_the_softmax_of_the_plain_model(scorer, columns):
    texts = random_texts(12, 0, columns)
    scores = scorer(texts)
    for text, row in zip(texts, scores, strict=True):
        inputs = scorer.tokenizer(*text, return_tensors="pt", truncation=True, max_length=40)
        with torch.no_grad():
            plain = scorer.model(**inputs).logits[0].softmax(-1).numpy()
        assert np.abs(row - plain).max() < STEP
        assert row.argmax() == plain.argmax()
        assert row.sum() == pytest.approx(1)


def test_a_text_scores_the_same_in_any_company(scorer):
    texts = random_texts(150, 1)
    together = scorer(texts)
    shuffled = np.random.default_rng(2).permutation(len(texts))
    assert np.array_equal(scorer([texts[i] for i in shuffled]), together[shuffled])
    for size in (1, 3, 17):
        parts = [scorer(texts[i : i + size]) for i in range(0, len(texts), size)]
        assert np.array_equal(np.concatenate(parts), together)


@pytest.mark.parametrize("side", ["left", "right"])
def test_an_emptied_text_has_a_score_also_where_no_special_tokens_are_added(side):
    tokenizer = decoder_tokenizer(["good film"])
    tokenizer.bos_token = None
    tokenizer.pad_token, tokenizer.padding_side = tokenizer.eos_token, side
    assert tokenizer([""])["input_ids"] == [[]]
    model = tiny("llama", vocab_size=len(tokenizer), num_labels=2, pad_token_id=tokenizer.eos_token_id)
    scorer = Scorer(model, tokenizer)
    alone = scorer([("",)])
    with torch.no_grad():
        plain = model(input_ids=torch.tensor([[tokenizer.eos_token_id]])).logits[0].softmax(-1).numpy()
    assert np.abs(alone[0] - plain).max() < STEP
    assert np.array_equal(scorer([("good film",), ("",)])[1:], alone)


def test_rows_are_counted(scorer):
    before = scorer.rows
    scorer(random_texts(5, 3))
    assert scorer.rows == before + 5


@given(
    st.lists(st.lists(st.floats(-8, 8), min_size=3, max_size=3), min_size=1, max_size=5),
    st.lists(st.floats(-1e-5, 1e-5), min_size=3, max_size=3),
)
def test_noise_changes_a_score_only_where_it_is_called_doubtful(logits, noise):
    logits = np.array(logits)
    disturbed = logits + np.array(noise) * 0.99
    doubtful = near_edge(logits, STEP, 1e-5).any(axis=1) | near_tie(logits, 1e-5)
    same = (probabilities(logits) == probabilities(disturbed)).all(axis=1)
    assert (same | doubtful).all()


@given(st.lists(st.floats(-8, 8), min_size=2, max_size=4))
def test_rounding_never_changes_who_wins(logits):
    row = np.array([logits])
    assert probabilities(row).argmax() == row.argmax()


def test_a_model_that_gives_no_number_is_refused(scorer):
    broken = tiny("bert", vocab_size=len(scorer.tokenizer), num_labels=2)
    torch.nn.init.constant_(broken.classifier.bias, float("nan"))
    with pytest.raises(ModelError, match="NaN or infinite"):
        Scorer(broken, scorer.tokenizer)([("film",)])
