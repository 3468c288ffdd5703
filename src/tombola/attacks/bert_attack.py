"""BERT-Attack: a masked language model proposes the words. (Li et al., EMNLP 2020)"""

from typing import ClassVar, Literal

from pydantic import Field

from tombola.attacks.base import Attack, Tools, attacks
from tombola.attacks.constraints import Constraint, MaxChanged, SentenceSimilarity, satisfying
from tombola.attacks.greedy import by_importance, substitution
from tombola.attacks.requests import Steps, ask, ask_until, propose
from tombola.attacks.resources import MLM
from tombola.attacks.text import Text, same_case


@attacks.register
class BertAttack(Attack):
    """Algorithm 1: the most important words (at most 40 %), with 48 proposals each, tried in order.

    The masked LM reads the original text once, unmasked; words of several sub-words get combinations of their
    sub-words' proposals, ranked by perplexity. Candidates are tried one after another, and the first that changes the
    label ends the attack, so only those up to it count as queries.
    """

    paper: ClassVar[str] = "Li et al. (2020), BERT-ATTACK, EMNLP, Algorithm 1"
    needs: ClassVar[tuple[str, ...]] = ("lexicon", "encoder", MLM)

    name: Literal["bert_attack"] = "bert_attack"
    candidates: int = Field(
        default=48, gt=0, description="proposals of the masked language model for each word"
    )
    max_changed: float = Field(default=0.4, gt=0, le=1, description="maximum share of words to change")
    min_similarity: float = Field(
        default=0.2, ge=-1, le=1, description="minimum cosine similarity of the two sentences"
    )

    def perturb(self, text: Text, label: int, tools: Tools) -> Steps[Text]:
        """Rank words by masking them, then try the masked LM's proposals for each in turn."""
        positions = tools.content_words(text)
        order = yield from by_importance(text, label, positions, substitution(text, tools.mask))
        proposals = yield from self._proposals(text, positions)
        constraints: list[Constraint] = [
            MaxChanged(self.max_changed),
            SentenceSimilarity(self.min_similarity),
        ]
        is_stop_word = tools.resources.lexicon.is_stop_word

        current = text
        lowest = (yield from ask([text]))[0][label]
        for position in order[: max(1, int(self.max_changed * len(text.words)))]:
            words = (word for word in proposals[position] if not is_stop_word(word))
            like = text.words[position]
            candidates = [current.replace(position, same_case(word, like=like)) for word in words]
            candidates = yield from satisfying(constraints, current, candidates)
            if not candidates:
                continue
            scores = yield from ask_until(candidates, label)
            if int(scores[-1].argmax()) != label:
                return candidates[len(scores) - 1]
            best = int(scores[:, label].argmin())
            if scores[best, label] < lowest:
                current, lowest = candidates[best], scores[best, label]
        return current

    def _proposals(self, text: Text, positions: list[int]) -> Steps[dict[int, list[str]]]:
        """Return the masked LM's proposals for each word, column by column."""
        proposals: dict[int, list[str]] = {}
        for column in range(len(text.columns)):
            in_column = [i for i in positions if text.column_of(i) == column]
            if not in_column:
                continue
            spans = text.spans(column)
            words = yield from propose(
                text.columns[column], tuple(spans[i] for i in in_column), self.candidates
            )
            proposals.update(zip(in_column, words, strict=True))
        return proposals
