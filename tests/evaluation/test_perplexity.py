"""Perplexities against plain PyTorch, and their standard errors against a direct formula and a jackknife."""

import math
import re
from typing import Any

import numpy as np
import pytest
import torch

from tests.tiny import DECODERS, VOCABULARY, tiny
from tests.words import decoder_tokenizer
from tombola.errors import DataError
from tombola.evaluation.documents import text_counts
from tombola.evaluation.evaluate import evaluate_split
from tombola.evaluation.metrics import metrics
from tombola.evaluation.scores import Score
from tombola.tasks import Split, Task
from tombola.tasks.metrics import is_share, lower_is_better, merit

WORDS = [f"w{i}" for i in range(VOCABULARY - 6)]
TOKENIZER = decoder_tokenizer([f"{word} \n" for word in WORDS])


def documents(count: int = 9, seed: int = 0) -> Split:
    rng = np.random.default_rng(seed)
    texts = [(" ".join(rng.choice(WORDS, size=rng.integers(3, 30))),) for _ in range(count)]
    ids = [str(i) for i in range(count)]
    return Split(Task.named("wikitext2"), "validation", texts, [None] * count, ids, "")


def plain_losses(model: Any, split: Split, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The negative log-likelihood and the tokens of every document, token by token."""
    stream, owner = [TOKENIZER.eos_token_id], [-1]
    for number, (text,) in enumerate(split.texts):
        ids = TOKENIZER(text)["input_ids"]
        stream += [*ids, TOKENIZER.eos_token_id]
        owner += [number] * len(ids) + [-1]
    losses, tokens = np.zeros(len(split)), np.zeros(len(split))
    for place in range(1, len(stream)):
        if owner[place] < 0:
            continue
        start = (place - 1) // (size - 1) * (size - 1)
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([stream[start:place]])).logits[0, -1]
        losses[owner[place]] -= logits.double().log_softmax(-1)[stream[place]].item()
        tokens[owner[place]] += 1
    return losses, tokens


@pytest.mark.parametrize("model_type", DECODERS)
def test_perplexities_are_those_of_a_plain_loop_over_tokens(model_type: str) -> None:
    model, split = tiny(model_type, "causal-lm"), documents()
    losses, tokens = plain_losses(model, split, 16)
    words = np.array([len(re.split(r"\s+", text)) for (text,) in split.texts])
    octets = np.array([len(text.encode()) for (text,) in split.texts])
    found = evaluate_split(model, TOKENIZER, split, 16)
    for name, counts in (("perplexity", tokens), ("word_perplexity", words), ("byte_perplexity", octets)):
        assert found.scores[name].value == pytest.approx(math.exp(losses.sum() / counts.sum()), rel=1e-4)
        assert found.scores[name].n == 9
    np.testing.assert_allclose(
        found.predictions, np.stack([losses, tokens, words, octets], axis=1), rtol=1e-4
    )


def test_left_padding_makes_no_difference() -> None:
    model, split = tiny("llama", "causal-lm"), documents()
    left = decoder_tokenizer([f"{word} \n" for word in WORDS])
    left.padding_side = "left"
    one, two = (
        evaluate_split(model, each, split, 16).scores["perplexity"].value for each in (TOKENIZER, left)
    )
    assert one == pytest.approx(two, rel=1e-5)


def test_words_and_bytes_are_counted_as_the_harness_does() -> None:
    assert text_counts(" = Titel = \n \n Größe . ") == (7, 25)  # a space at either end makes an empty word


class TestError:
    rng = np.random.default_rng(1)
    counts = rng.integers(20, 200, size=60).astype(float)
    losses = counts * (3 + 0.4 * rng.standard_normal(60))

    def score(self, losses: np.ndarray, counts: np.ndarray) -> Score:
        return metrics["perplexity"](losses, np.stack([counts, counts, counts], axis=1))

    def test_it_is_the_delta_method_of_a_ratio(self) -> None:
        mean = self.losses.sum() / self.counts.sum()
        covariance = np.cov(self.losses, self.counts)
        n, tokens = len(self.counts), self.counts.mean()
        variance = covariance[0, 0] - 2 * mean * covariance[0, 1] + mean**2 * covariance[1, 1]
        expected = math.exp(mean) * math.sqrt(variance / n) / tokens
        assert self.score(self.losses, self.counts).stderr == pytest.approx(expected, rel=1e-9)

    def test_a_jackknife_gives_about_the_same(self) -> None:
        left_out = [
            self.score(np.delete(self.losses, i), np.delete(self.counts, i)).value
            for i in range(len(self.counts))
        ]
        n = len(left_out)
        jackknife = math.sqrt((n - 1) / n * np.sum((left_out - np.mean(left_out)) ** 2))
        assert self.score(self.losses, self.counts).stderr == pytest.approx(jackknife, rel=0.05)

    def test_the_interval_is_normal_on_the_log_scale(self) -> None:
        found = Score(20.0, 4.0, 60, "delta method")
        low, high = found.interval()
        assert (math.log(low), math.log(high)) == pytest.approx(
            (math.log(20) - 0.392, math.log(20) + 0.392), abs=1e-4
        )

    def test_a_destroyed_model_has_a_number_too(self) -> None:
        found = self.score(self.losses * 1000, self.counts)
        assert all(map(math.isfinite, (found.value, found.stderr, *found.interval())))


def test_one_document_has_its_error_over_blocks() -> None:
    model = tiny("llama", "causal-lm")
    text = " ".join(np.random.default_rng(2).choice(WORDS, size=60))
    split = Split(Task.named("wikitext2"), "validation", [(text,)], [None], ["0"], "")
    found = evaluate_split(model, TOKENIZER, split, 16)
    losses, tokens = plain_losses(model, split, 16)
    assert found.scores["perplexity"].value == pytest.approx(math.exp(losses[0] / tokens[0]), rel=1e-4)
    words = len(text.split())
    assert found.scores["word_perplexity"].value == pytest.approx(math.exp(losses[0] / words), rel=1e-4)
    assert found.scores["perplexity"].n == math.ceil(tokens[0] / 15)
    assert "is a single document" in found.notes[0]
    with pytest.raises(DataError, match="at least two documents"):
        evaluate_split(model, TOKENIZER, Split(split.task, "validation", [("w1 w2",)], [None], ["0"], ""), 16)


def test_metrics_know_their_direction_and_their_unit() -> None:
    assert {name for name in metrics if lower_is_better(name)} == {
        "perplexity",
        "word_perplexity",
        "byte_perplexity",
    }
    assert not any(map(is_share, ("perplexity", "mcc", "mcc/group", "pearson", "spearman")))
    assert is_share("accuracy")
    assert is_share("under attack")
    assert merit(20, "perplexity") < merit(19, "perplexity")
    assert merit(0.9, "accuracy") > merit(0.8, "accuracy")
