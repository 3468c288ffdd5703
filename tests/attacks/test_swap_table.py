"""Which tokens may replace a token in training with word swaps."""

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tests.words import word_tokenizer
from tombola.attacks.neighbours import bundled_neighbours
from tombola.attacks.swap_table import SwapTable
from tombola.errors import TombolaError
from tombola.models.finding import find_model
from tombola.models.loading import load_tokenizer
from tombola.objectives.swaps import SwapAdversary
from tombola.words.lexicon import bundled


@pytest.fixture(scope="module")
def minilm():
    return load_tokenizer(find_model("minilm").folder)


@pytest.fixture(scope="module")
def table(minilm) -> SwapTable:
    return SwapTable(minilm, SwapAdversary())


def words_for(tokenizer, table: SwapTable, text: str, at: int) -> list[str]:
    """The words that may replace the token at a position of a text, special tokens not counted."""
    ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    return [
        tokenizer.decode([token]).strip() for token in table.options_of(ids)[0, at].tolist() if token >= 0
    ]


def test_neighbours_are_those_that_textfooler_tries(minilm, table):
    near, lexicon = bundled_neighbours().of("film", 50, 0.5), bundled()
    expected = [word for word in near if lexicon.same_part_of_speech("film", word)][:20]
    assert words_for(minilm, table, "a fine film", 2) == expected
    assert "movie" in expected


def test_opposites_and_stop_words_are_left_out(minilm, table):
    assert "bad" in bundled_neighbours().words
    assert "bad" not in words_for(minilm, table, "good", 0)
    assert words_for(minilm, table, "the", 0) == []


def test_fewer_or_closer_neighbours_on_request(minilm):
    whole = SwapTable(minilm, SwapAdversary(candidates=50))
    few = SwapTable(minilm, SwapAdversary(candidates=3))
    close = SwapTable(minilm, SwapAdversary(candidates=50, min_cosine=0.9))
    everything = words_for(minilm, whole, "film", 0)
    assert words_for(minilm, few, "film", 0) == everything[:3]
    nearest = words_for(minilm, close, "film", 0)
    assert len(nearest) < len(everything)
    assert nearest == everything[: len(nearest)]


def test_the_first_token_of_a_longer_word_stays(minilm, table):
    tokens = minilm.tokenize("filmically")
    assert tokens[0] == "film"
    assert tokens[1].startswith("##")
    assert words_for(minilm, table, "filmically", 0) == []
    assert words_for(minilm, table, "film", 0) != []


def test_special_tokens_and_padding_stay(minilm, table):
    batch = minilm(["a film", "a very fine film"], padding=True, return_tensors="pt")
    options = table.options_of(batch["input_ids"])
    special = torch.isin(batch["input_ids"], torch.tensor(minilm.all_special_ids))
    assert options[special].eq(-1).all()


def test_a_vocabulary_of_whole_words():
    tokenizer = word_tokenizer(["good great film movie the"])
    table = SwapTable(tokenizer, SwapAdversary())
    assert words_for(tokenizer, table, "film", 0) == ["movie"]
    assert words_for(tokenizer, table, "good", 0) == ["great"]


def test_a_vocabulary_that_marks_where_words_begin():
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<pad>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    backend.train_from_iterator([" film movie"] * 9, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>")
    table = SwapTable(tokenizer, SwapAdversary())
    assert tokenizer.tokenize(" film films!")[:3] == ["Ġfilm", "Ġfilm", "s"]
    assert words_for(tokenizer, table, " film films!", 0) == ["movie"]
    assert words_for(tokenizer, table, " film films!", 1) == []
    assert words_for(tokenizer, table, " film!", 0) == ["movie"]


@pytest.mark.parametrize("text", ["it won't work", "it won’t work", "IT WON'T WORK"])
def test_negations_stay(minilm, table, text):
    assert minilm.tokenize(text)[1:2] == ["won"]
    assert words_for(minilm, table, text, 1) == []
    assert words_for(minilm, table, text, 4) != []
    assert words_for(minilm, table, "they won 's", 1) == words_for(minilm, table, "they won", 1) != []


def byte_level(corpus: str, special: list[str]) -> Tokenizer:
    """A byte-level BPE as GPT-2's and RoBERTa's, which knows the words of a corpus."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    backend.train_from_iterator([corpus] * 9, trainer)
    return backend


@pytest.mark.parametrize("negation", ["won't", "won’t"])
def test_negations_stay_in_byte_level_vocabularies(negation):
    backend = byte_level(" it won't win won’t", ["<pad>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>")
    table = SwapTable(tokenizer, SwapAdversary())
    assert words_for(tokenizer, table, " it won", 1) == ["win"]
    assert tokenizer.tokenize(f" it {negation}")[1] == "Ġwon"
    assert words_for(tokenizer, table, f" it {negation}", 1) == []


def test_the_first_word_of_a_byte_level_text_has_no_blank_and_stays():
    backend = byte_level("film film film movie", ["<pad>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>")
    table = SwapTable(tokenizer, SwapAdversary())
    assert tokenizer.tokenize("film film") == ["film", "Ġfilm"]
    assert words_for(tokenizer, table, "film film", 0) == []
    assert words_for(tokenizer, table, "film film", 1) == ["movie"]


def test_a_vocabulary_whose_texts_always_begin_with_a_mark():
    """As of Llama 2 and Phi-3, where a blank before the first word is one mark more."""
    backend = Tokenizer(models.BPE(unk_token="<unk>"))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=["<unk>", "<pad>"])
    backend.train_from_iterator(["film movie"] * 9, trainer)
    backend.pre_tokenizer, backend.decoder = None, decoders.Replace("▁", " ")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>", unk_token="<unk>")
    assert tokenizer.tokenize(" film") == ["▁", "▁film"]
    table = SwapTable(tokenizer, SwapAdversary())
    assert words_for(tokenizer, table, "film movie", 0) == ["movie"]
    assert words_for(tokenizer, table, "film movie", 1) == ["film"]


def test_names_stay_in_a_vocabulary_with_capitals():
    backend = byte_level(" film movie Film Movie", ["<pad>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>")
    table = SwapTable(tokenizer, SwapAdversary())
    assert tokenizer.tokenize(" Film film") == ["ĠFilm", "Ġfilm"]
    assert words_for(tokenizer, table, " Film film", 0) == []
    assert words_for(tokenizer, table, " Film film", 1) == ["movie"]


def test_a_vocabulary_with_gaps_between_its_numbers():
    ids = {"[PAD]": 0, "[UNK]": 1, "a": 2, "film": 7, "movie": 9}
    backend = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]")
    table = SwapTable(tokenizer, SwapAdversary())
    assert len(tokenizer) == 5
    assert words_for(tokenizer, table, "a film", 1) == ["movie"]


def test_the_end_of_a_word_that_is_a_word_itself_stays():
    """As in BERTweet, whose vocabulary marks the tokens that a word goes on after."""
    ids = {"[PAD]": 0, "[UNK]": 1, "super@@": 2, "film": 3, "movie": 4}
    backend = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]")
    table = SwapTable(tokenizer, SwapAdversary())
    assert words_for(tokenizer, table, "super@@ film film", 1) == []
    assert words_for(tokenizer, table, "super@@ film film", 2) == ["movie"]


def test_a_vocabulary_without_neighbours_is_refused():
    with pytest.raises(TombolaError, match=r"of the 7 tokens of this vocabulary none has a neighbour"):
        SwapTable(word_tokenizer(["the film"]), SwapAdversary())
