"""A word-level tokenizer made in memory, so that tests need no hub and no downloaded vocabulary."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PhobertTokenizer, PreTrainedTokenizerFast, XLNetTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def word_tokenizer(
    texts: Iterable[str | tuple[str, ...]],
    vocab_size: int | None = None,
    max_length: int = 512,
    segments: bool = True,
) -> PreTrainedTokenizerFast:
    """A BERT-like tokenizer ([CLS] a [SEP] b [SEP], segment ids) whose vocabulary is the words of `texts`.

    The most frequent words come first; `vocab_size` counts the five special tokens too. Models without segment
    embeddings (RoBERTa, DistilBERT, ModernBERT …) take `segments=False`: no token_type_ids.
    """
    lower, split = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for text in texts:
        for part in (text,) if isinstance(text, str) else text:
            counts.update(word for word, _ in split.pre_tokenize_str(lower.normalize_str(part)))
    words = sorted(counts, key=lambda word: (-counts[word], word))
    vocabulary = [*SPECIAL, *(word for word in words if word not in SPECIAL)][:vocab_size]
    ids = {word: index for index, word in enumerate(vocabulary)}

    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.normalizer = lower
    tokenizer.pre_tokenizer = split
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=max_length,
        model_input_names=["input_ids", *(["token_type_ids"] if segments else []), "attention_mask"],
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def decoder_tokenizer(texts: Iterable[str], *, adds_bos: bool = False) -> PreTrainedTokenizerFast:
    """A tokenizer like a decoder's: words and line breaks are tokens, `<eos>` ends texts, `<bos>` begins them if asked.

    Its first ids are those of padding, `<bos>`, `<eos>` and unknown words, as in the configs of tiny models.
    """
    special = ["<pad>", "<bos>", "<eos>", "<unk>"]
    split = pre_tokenizers.Split(Regex(r"\n|[^\s]+|[^\S\n]+"), "isolated")
    words = {word for text in texts for word, _ in split.pre_tokenize_str(text)}
    ids = {word: index for index, word in enumerate([*special, *sorted(words)])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    tokenizer.pre_tokenizer = split
    if adds_bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<bos> $A", pair="<bos> $A $B", special_tokens=[("<bos>", ids["<bos>"])]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_input_names=["input_ids", "attention_mask"],
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
    )


def python_tokenizer(folder: Path, letters: str = "abcdef") -> PhobertTokenizer:
    """A tokenizer written in Python (`<s> a </s></s> b </s>`), which knows no characters; its words are letters."""
    (folder / "vocab.txt").write_text("".join(f"{letter} 1\n" for letter in letters))
    (folder / "bpe.codes").write_text("")
    return PhobertTokenizer(str(folder / "vocab.txt"), str(folder / "bpe.codes"))


def xlnet_tokenizer(letters: str = "abcdef") -> XLNetTokenizer:
    """A tokenizer with [CLS] behind the texts (`a <sep> b <sep> <cls>`); its words are letters."""
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
    pieces = [*((token, 0.0) for token in special), *((f"▁{letter}", -1.0) for letter in letters)]
    return XLNetTokenizer(vocab=pieces)
