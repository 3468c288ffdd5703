"""A masked language model as an oracle that proposes substitutes for words. (BERT-Attack, §3.2)"""

import re
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import torch

from tombola.errors import ModelError
from tombola.tasks.encoding import fitting_length

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Span = tuple[int, int]
Question = tuple[str, tuple[Span, ...], int]

WHOLE_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
LATER_SUBWORD = re.compile(r"##[^\W\d_]+")
"""A later sub-word in a WordPiece vocabulary; byte-level ones, such as RoBERTa's, have tokens of number signs alone."""
PER_SUBWORD = 12  # predictions of each sub-word that go into combinations
LONGEST_TEXT = 512  # tokens that are read; words behind them get no proposals
LONGEST = 4  # sub-words of a word beyond which it gets no proposals
COMBINATIONS = 144  # most probable combinations whose perplexity is computed


class MaskedLM:
    """Proposes words in context. The text is read unmasked, as the paper recommends.

    Every text is read on its own, so that an answer depends on nothing else.
    """

    def __init__(
        self, model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", name: str = "given as an object"
    ) -> None:
        if not tokenizer.is_fast:
            raise ModelError(
                f"The masked language model {name} cannot propose words: its tokenizer ({type(tokenizer).__name__}) is "
                "not a fast one, which tells the characters of each token. Choose another model."
            )
        self.model, self.tokenizer, self.name = model.eval(), tokenizer, name
        self._special = set(tokenizer.all_special_ids)
        self._wordpiece = any(LATER_SUBWORD.fullmatch(token) for token in tokenizer.get_vocab())

    @classmethod
    def load(cls, name: str) -> "MaskedLM":
        """Load a masked LM from a folder or the hub. A checkpoint without a prediction head is rejected."""
        from transformers import AutoModelForMaskedLM

        from tombola.foundations.hardware.machine import default_device
        from tombola.foundations.quiet import quiet
        from tombola.models.finding import find_model
        from tombola.models.loading import load_tokenizer
        from tombola.models.safety import open_pretrained

        folder = find_model(name).folder
        with quiet():
            model, loaded = open_pretrained(
                AutoModelForMaskedLM, folder, dtype=torch.float32, output_loading_info=True
            )
        if missing := sorted(loaded["missing_keys"]):
            raise ModelError(
                f"{name!r} is not a masked language model: it lacks {missing[0]!r}. BERT-Attack needs one, such as "
                "mlm='bert-base-uncased' or a model folder."
            )
        return cls(model.to(default_device()), load_tokenizer(folder), name)

    def __call__(self, questions: Sequence[Question]) -> list[list[list[str]]]:
        """Return up to `k` words, best first, for each span of each (text, spans, k)."""
        return [self._propose(*question) for question in questions]

    @torch.inference_mode()
    def _propose(self, text: str, spans: tuple[Span, ...], k: int) -> list[list[str]]:
        limit = min(fitting_length(LONGEST_TEXT, self.model.config), self.tokenizer.model_max_length)
        inputs = self.tokenizer(
            text, truncation=True, max_length=limit, return_offsets_mapping=True, return_tensors="pt"
        )
        offsets = inputs.pop("offset_mapping")[0].tolist()
        log_probabilities = self.model(**inputs.to(self.model.device)).logits[0].float().log_softmax(-1).cpu()
        best = log_probabilities.topk(min(k, log_probabilities.shape[1]), dim=-1)
        proposals = []
        begins = [_first_letter(text, a, b) for a, b in offsets]
        for start, end in spans:
            places = [i for i, (_, b) in enumerate(offsets) if start <= begins[i] < b <= end]
            if len(places) == 1:
                words = self._words(best.indices[places[0]].tolist())
            elif 1 < len(places) <= LONGEST:
                words = self._combinations(best.values[places], best.indices[places], k)
            else:
                words = []
            proposals.append(list(dict.fromkeys(word for word in words if word != text[start:end].lower())))
        return proposals

    def _words(self, ids: list[int]) -> list[str]:
        """Return the predicted tokens that are whole words; sub-words, punctuation and numbers are dropped."""
        starts = (token for token in self.tokenizer.convert_ids_to_tokens(ids) if self._begins_word(token))
        words = (self.tokenizer.convert_tokens_to_string([token]).strip() for token in starts)
        return [word for word in words if WHOLE_WORD.fullmatch(word)]

    def _begins_word(self, token: str) -> bool:
        return not token.startswith("##") if self._wordpiece else token.startswith(("Ġ", "▁"))

    def _combinations(self, values: torch.Tensor, ids: torch.Tensor, k: int) -> list[str]:
        """Return words made of one prediction per sub-word, ranked by the perplexity of their sub-words.

        The paper feeds all K^t combinations to the masked LM; we feed it the most probable of the 12^t best ones that
        form a single word: a word beginning followed by continuations.
        """
        columns = [
            [pair for pair in zip(v, i, strict=True) if self._fits(pair[1], begins=place == 0)][:PER_SUBWORD]
            for place, (v, i) in enumerate(zip(values.tolist(), ids.tolist(), strict=True))
        ]
        joint = sorted(product(*columns), key=lambda row: -sum(value for value, _ in row))[:COMBINATIONS]
        if not joint:
            return []
        combinations = torch.tensor([[token for _, token in row] for row in joint])
        logits = self.model(input_ids=combinations.to(self.model.device)).logits.float().cpu()
        losses = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), combinations, reduction="none"
        ).mean(1)
        ranked = combinations[losses.argsort(stable=True)][:k].tolist()
        words = (self.tokenizer.decode(row).strip() for row in ranked)
        return [word for word in words if WHOLE_WORD.fullmatch(word)]

    def _fits(self, token_id: int, *, begins: bool) -> bool:
        token = self.tokenizer.convert_ids_to_tokens(token_id)
        return token_id not in self._special and self._begins_word(token) == begins


def _first_letter(text: str, start: int, end: int) -> int:
    """Return where a token begins in a text without the preceding spaces, which some tokenizers include."""
    return end - len(text[start:end].lstrip())
