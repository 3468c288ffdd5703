import copy

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from tests.tiny import tiny
from tests.words import python_tokenizer
from tombola.attacks.masked_lm import MaskedLM
from tombola.errors import ModelError

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "film", "plot", "good", "bad"]
VOCABULARY += ["un", "##like", "##able", "##ly", "re", "##do", "7", "!"]


@pytest.fixture(scope="module")
def tokenizer():
    ids = {token: i for i, token in enumerate(VOCABULARY)}
    inner = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="[UNK]", pad_token="[PAD]", mask_token="[MASK]", model_max_length=64
    )


@pytest.fixture(scope="module")
def lm(tokenizer):
    return MaskedLM(tiny("bert", "masked-lm", vocab_size=len(VOCABULARY)), tokenizer)


def test_whole_words_by_falling_probability_read_with_nothing_masked(lm, tokenizer):
    text = "good film !"
    ((found,),) = lm([(text, ((0, 4),), len(VOCABULARY))])
    with torch.no_grad():
        logits = lm.model(**tokenizer(text, return_tensors="pt", return_token_type_ids=False)).logits[0, 1]
    ranked = [VOCABULARY[i] for i in logits.argsort(descending=True).tolist()]
    assert found == [token for token in ranked if token in {"film", "plot", "bad", "un", "re"}]


def test_sub_words_are_combined_and_ranked_by_perplexity(lm):
    ((found,),) = lm([("unlikely", ((0, 8),), 48)])
    assert "unlikely" not in found
    assert len(found) == len(set(found)) > 5

    def perplexity(word):
        ids = torch.tensor([lm.tokenizer(word, add_special_tokens=False)["input_ids"]])
        with torch.no_grad():
            return torch.nn.functional.cross_entropy(lm.model(input_ids=ids).logits[0], ids[0]).item()

    pieces = {word: lm.tokenizer.tokenize(word) for word in found}
    exact = [word for word in found if len(pieces[word]) == 3 and "[UNK]" not in pieces[word]]
    values = [perplexity(word) for word in exact]
    assert len(values) > 3
    assert values == sorted(values)


def test_k_bounds_the_proposals_and_words_without_tokens_get_none(lm):
    ((few,),) = lm([("good film", ((0, 4),), 3)])
    assert len(few) <= 3
    assert lm([("good film", ((4, 4),), 9)]) == [[[]]]


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_text_is_read_as_far_as_the_model_has_positions(tokenizer, family):
    endless = copy.deepcopy(tokenizer)
    endless.model_max_length = int(1e30)
    endless.model_input_names = ["input_ids", "attention_mask"]
    lm = MaskedLM(tiny(family, "masked-lm", vocab_size=len(VOCABULARY)), endless)
    ((first, last),) = lm([("good film " * 100, ((0, 4), (990, 994)), 9)])
    assert first
    assert not last


def test_a_checkpoint_without_its_head_is_refused(tmp_path, tokenizer):
    tiny("bert", "base", vocab_size=len(VOCABULARY)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="not a masked language model"):
        MaskedLM.load(str(tmp_path))


def test_a_tokenizer_that_knows_no_characters_is_refused(tmp_path, lm):
    with pytest.raises(ModelError, match=r"its tokenizer \(PhobertTokenizer\) is not a fast one"):
        MaskedLM(lm.model, python_tokenizer(tmp_path))


def test_a_folder_is_loaded(tmp_path, tokenizer, lm):
    lm.model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    question = [("good film", ((0, 4), (5, 9)), 8)]
    assert MaskedLM.load(str(tmp_path))(question) == lm(question)


def test_sub_words_of_a_byte_level_vocabulary_are_no_words_although_it_has_tokens_of_number_signs():
    vocabulary = ["<pad>", "<unk>", "<mask>", "Ġgood", "Ġfilm", "Ġplot", "ing", "like", "ly", "##", "####"]
    inner = Tokenizer(models.WordLevel({token: i for i, token in enumerate(vocabulary)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<unk>", pad_token="<pad>", mask_token="<mask>", model_max_length=64
    )
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    lm = MaskedLM(tiny("roberta", "masked-lm", vocab_size=len(vocabulary)), tokenizer)
    ((found,),) = lm([("good film", ((0, 4),), len(vocabulary))])
    assert set(found) == {"film", "plot"}


@pytest.mark.parametrize("style", ["metaspace", "byte-level"])
def test_words_get_proposals_where_a_token_includes_the_blank_before_it(style):
    """As in ModernBERT, DeBERTa-v3 and ALBERT; RoBERTa's tokenizer leaves the blank out of its offsets."""
    mark, splits, decoder = {
        "metaspace": ("▁", pre_tokenizers.Metaspace(), decoders.Metaspace()),
        "byte-level": ("Ġ", pre_tokenizers.ByteLevel(add_prefix_space=True), decoders.ByteLevel()),
    }[style]
    vocabulary = ["<pad>", "<unk>", "<mask>", *(mark + word for word in ("good", "film", "plot")), "ing"]
    inner = Tokenizer(models.WordLevel({token: i for i, token in enumerate(vocabulary)}, unk_token="<unk>"))
    inner.pre_tokenizer, inner.decoder = splits, decoder
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<unk>", pad_token="<pad>", mask_token="<mask>", model_max_length=64
    )
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    assert tokenizer("good film", return_offsets_mapping=True)["offset_mapping"] == [(0, 4), (4, 9)]
    lm = MaskedLM(tiny("roberta", "masked-lm", vocab_size=len(vocabulary)), tokenizer)
    ((first, second),) = lm([("good film", ((0, 4), (5, 9)), len(vocabulary))])
    assert set(first) == {"film", "plot"}
    assert set(second) == {"good", "plot"}
