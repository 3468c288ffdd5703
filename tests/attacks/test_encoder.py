import itertools

import numpy as np
import pytest

from tests.attacks.test_scorer import WORDS, random_texts
from tests.tiny import tiny
from tests.words import word_tokenizer
from tombola.attacks.encoder import STEP, SentenceEncoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("encoder")
    tokenizer = word_tokenizer(WORDS)
    tokenizer.save_pretrained(path)
    tiny("bert", "base", vocab_size=len(tokenizer)).save_pretrained(path)
    return path


def test_cosines_of_mean_pooled_states(folder):
    encoder = SentenceEncoder(str(folder))
    texts = [text for (text,) in random_texts(6, 0)]

    def embedding(text):
        states = encoder.model(**encoder.tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        mean = states.mean(0).detach().numpy().astype(float)
        return mean / np.linalg.norm(mean)

    pairs = list(zip(texts[:3], texts[3:], strict=True))
    assert encoder(pairs) == pytest.approx([embedding(a) @ embedding(b) for a, b in pairs], abs=STEP)
    assert encoder([(texts[0], texts[0])]) == [1.0]


def test_a_pair_is_as_similar_in_any_company(folder):
    encoder = SentenceEncoder(str(folder))
    texts = [text for (text,) in random_texts(201, 1)]
    pairs = list(itertools.pairwise(texts))
    together = encoder(pairs)
    fresh = SentenceEncoder(str(folder))
    assert [fresh([pair])[0] for pair in pairs] == together


def test_a_text_is_encoded_once_while_it_is_used(folder):
    encoder = SentenceEncoder(str(folder))
    encoder([("film plot", "good"), ("film plot", "bad")])
    assert encoder.rows == 3
    encoder([("film plot", "warm")])
    assert encoder.rows == 4
