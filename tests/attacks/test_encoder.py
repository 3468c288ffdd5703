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


def test_a_text_is_read_as_far_as_the_encoder_has_positions(folder):
    encoder = SentenceEncoder(str(folder))
    encoder.tokenizer.model_max_length = int(1e30)
    words = " ".join(itertools.islice(itertools.cycle(WORDS), 100))
    assert encoder([(words, " ".join(words.split()[:62]))]) == [1.0]  # 64 positions with [CLS] and [SEP]


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


@pytest.mark.bf16
def test_enough_similarity_is_decided_as_in_32_bits(folder):
    texts = [text for (text,) in random_texts(120, 2)]
    pairs = list(itertools.pairwise(texts))
    exact = SentenceEncoder(str(folder))(pairs)
    middle = sorted(exact)[len(exact) // 2]  # many cosines lie close to this threshold
    encoder = SentenceEncoder(str(folder), precision="bf16")
    assert encoder.at_least([(*pair, middle) for pair in pairs]) == [cosine >= middle for cosine in exact]
    assert len(texts) < encoder.rows < 2 * len(texts)  # only the unclear ones are computed twice
    plain = SentenceEncoder(str(folder), precision="fp32")
    assert plain.at_least([(*pair, middle) for pair in pairs]) == [cosine >= middle for cosine in exact]
    assert plain.rows == len(texts)


@pytest.mark.bf16
def test_a_noisy_encoder_gets_a_wider_margin(folder, monkeypatch):
    texts = [text for (text,) in random_texts(120, 3)]
    pairs = list(itertools.pairwise(texts))
    encoder = SentenceEncoder(str(folder), precision="bf16")
    embed, draw = encoder.embed, np.random.default_rng(0)

    def noisy(texts, precision="fp32"):
        found = embed(texts)
        if precision == "fp32":
            return found
        found = found + draw.normal(0, 0.01, found.shape)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    monkeypatch.setattr(encoder, "embed", noisy)
    exact = SentenceEncoder(str(folder))(pairs)
    middle = sorted(exact)[len(exact) // 2]
    assert encoder.at_least([(*pair, middle) for pair in pairs]) == [cosine >= middle for cosine in exact]
