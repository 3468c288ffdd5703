"""Questions with windows of their contexts as token ids, and the mapping from tokens back to characters."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tombola.errors import DataError
from tombola.objectives import ANSWERABLE
from tombola.tasks.encoding import CHUNK, Encoded, ends_with_cls
from tombola.tasks.frame import Frame, require_offsets, token_ids
from tombola.tasks.questions import Answers
from tombola.tasks.split import Split

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

NO_ANSWER = 0  # the token that means "not in this window", BERT's [CLS]


@dataclass(frozen=True, eq=False)
class Windows(Encoded):
    """Each question with one or more windows of its context. `labels` are the answer's first and last token.

    `question` gives each window's question; `spans` every token's characters in the context, (−1, −1) outside.
    """

    question: np.ndarray = field(kw_only=True)
    spans: np.ndarray = field(kw_only=True)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return a window with the tokens that can begin or end an answer: those of its context, and `NO_ANSWER`."""
        example = super().__getitem__(index)
        index %= len(self)
        possible = self.spans[self.offsets[index] : self.offsets[index + 1], 0] >= 0
        possible[NO_ANSWER] = True
        return example | {ANSWERABLE: possible.tolist()}


class Context(NamedTuple):
    """The tokens of a context, and the character span of each."""

    ids: np.ndarray
    spans: np.ndarray


def encode_questions(
    split: Split, tokenizer: "PreTrainedTokenizerBase", max_length: int, stride: int, longest: int
) -> Windows:
    """Tokenise a split of questions, each cut to `longest` tokens, with the windows of its context.

    A window begins every `stride` tokens, or half a window if that is less. Windows that contain the whole answer are
    labelled with it; the others with "no answer here".
    """
    require_offsets(tokenizer, split.task)
    if ends_with_cls(tokenizer):
        raise DataError(
            f"{split.task.name}: questions need a model whose inputs begin with [CLS], which means no answer; this "
            f"model's end with it ({type(tokenizer).__name__}): choose another model."
        )
    frame = Frame(tokenizer, texts=2)
    free = min(max_length, tokenizer.model_max_length) - frame.size
    if free < 2:
        raise DataError(
            f"{max_length} tokens leave no room for a question and its context: increase max_length."
        )
    contexts = _contexts(tokenizer, [context for _, context in split.texts])
    questions = _questions(tokenizer, [question for question, _ in split.texts], min(longest, free // 2))
    inputs: list[dict[str, np.ndarray]] = []
    spans: list[np.ndarray] = []
    labels: list[tuple[int, int]] = []
    owners: list[int] = []
    for number, (asked, (_, text)) in enumerate(zip(questions, split.texts, strict=True)):
        context, answers = contexts[text], split.labels[number]
        assert isinstance(answers, Answers)
        first, last = _answer_tokens(context, answers.span)
        room = free - len(asked)
        for start in context_starts(len(context.ids), room, stride):
            part = slice(start, start + room)
            window = frame.around(asked, context.ids[part])
            at = frame.start(1, len(asked), len(context.ids[part]))
            inputs.append(window)
            spans.append(_placed(context.spans[part], at, len(window["input_ids"])))
            inside = start <= first <= last < start + room
            labels.append((first - start + at, last - start + at) if inside else (NO_ANSWER, NO_ANSWER))
            owners.append(number)
    return Windows(
        {name: np.concatenate([window[name] for window in inputs]) for name in frame.names},
        np.cumsum([0, *(len(block) for block in spans)]),
        np.array(labels, dtype=np.int64),
        question=np.array(owners),
        spans=np.concatenate(spans),
    )


def _contexts(tokenizer: "PreTrainedTokenizerBase", texts: list[str]) -> dict[str, Context]:
    """Tokenise each context once: several questions share it."""
    unique = list(dict.fromkeys(texts))
    contexts: dict[str, Context] = {}
    for start in range(0, len(unique), CHUNK):
        chunk = unique[start : start + CHUNK]
        encoded = tokenizer(chunk, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        for text, ids, spans in zip(chunk, encoded["input_ids"], encoded["offset_mapping"], strict=True):
            if not ids:
                raise DataError(f"There are no tokens in the context {text!r}.")
            contexts[text] = Context(np.array(ids, dtype=np.int32), np.array(spans, dtype=np.int32))
    return contexts


def _questions(tokenizer: "PreTrainedTokenizerBase", texts: list[str], longest: int) -> list[np.ndarray]:
    chunks = (texts[at : at + CHUNK] for at in range(0, len(texts), CHUNK))
    return [ids[:longest] for chunk in chunks for ids in token_ids(tokenizer, chunk)]


def context_starts(length: int, room: int, stride: int) -> range:
    """Return where the windows of `room` tokens of a context begin."""
    step = min(stride, (room + 1) // 2)
    return range(0, max(length - room, 0) + step, step)


def _answer_tokens(context: Context, span: tuple[int, int] | None) -> tuple[int, int]:
    """Return the first and the last token that overlap the span; (−1, −1) if there is none."""
    if span is None:
        return -1, -1
    first = int(np.searchsorted(context.spans[:, 1], span[0], side="right"))
    last = int(np.searchsorted(context.spans[:, 0], span[1], side="left")) - 1
    return (first, last) if first <= last else (-1, -1)


def _placed(spans: np.ndarray, at: int, length: int) -> np.ndarray:
    placed = np.full((length, 2), -1, dtype=np.int32)
    placed[at : at + len(spans)] = spans
    return placed
