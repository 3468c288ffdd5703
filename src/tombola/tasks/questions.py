"""Questions about a context: read SQuAD's nested files as rows, and check the answers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tombola.errors import DataError
from tombola.tasks.readers import BadRow, Fields, Malformed, Table, json_table, read_json


class Answers(NamedTuple):
    """The correct answers, and the span of the first one found in the context.

    `span` is in characters, end exclusive; None if the context has no answer.
    """

    texts: tuple[str, ...]
    span: tuple[int, int] | None


def question_table(path: Path) -> Table:
    """Read the questions of a .json file: SQuAD's articles with paragraphs, or a plain list of objects."""
    content = read_json(path)
    if isinstance(content, list):
        return json_table(path, enumerate(content, start=1))
    places: list[str] = []

    def rows() -> Iterator[tuple[int, Fields]]:
        for place, fields in _questions(content, path):
            places.append(place)
            yield len(places), fields

    return Table(
        ["id", "question", "context", "answers"],
        rows(),
        lambda number: f"{path}: {places[number - 1]}" if places else str(path),
    )


def _questions(content: Any, path: Path) -> Iterator[tuple[str, Fields]]:
    for a, article in enumerate(_members(content, "data", str(path)), start=1):
        for p, paragraph in enumerate(_members(article, "paragraphs", f"{path}: article {a}"), start=1):
            place = f"article {a}, paragraph {p}"
            for q, question in enumerate(_members(paragraph, "qas", f"{path}: {place}"), start=1):
                yield f"{place}, question {q}", _fields(question, paragraph)


def _members(holder: Any, key: str, place: str) -> list[Any]:
    members = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(members, list):
        raise DataError(
            f"{place}: there is no list {key!r}. A question file has data, paragraphs and qas like SQuAD, or is a "
            "list of objects with question, context and answers."
        )
    return members


def _fields(question: Any, paragraph: dict[str, Any]) -> Fields:
    if not isinstance(question, dict):
        return Malformed("not a JSON object")
    answers = [] if question.get("is_impossible") else question.get("answers")
    return [question.get("id"), question.get("question"), paragraph.get("context"), answers]


def read_answers(raw: Any, context: str, unanswerable: bool) -> Answers:
    """Read a question's answers from SQuAD's list or the hub's columns; BadRow if none is at its stated position.

    All are kept for scoring, even those that are misplaced.
    """
    answers = _answers(raw)
    if not answers:
        if unanswerable:
            return Answers((), None)
        raise BadRow("no answer; to allow such questions, set `unanswerable: true` in the task file")
    spans = [(at, at + len(text)) for text, at in answers if at >= 0 and context.startswith(text, at)]
    if not spans:
        text, at = answers[0]
        raise BadRow(f"the answer {text!r} is not at character {at} of its context")
    return Answers(tuple(text for text, _ in answers), spans[0])


def _answers(raw: Any) -> list[tuple[str, int]]:
    try:
        if isinstance(raw, dict):
            answers = list(zip(raw["text"], raw["answer_start"], strict=True))
        else:
            answers = [(answer["text"], answer["answer_start"]) for answer in raw]
    except (TypeError, KeyError, ValueError):
        raise BadRow("the answers are not a list with `text` and `answer_start` each") from None
    for text, at in answers:
        if not isinstance(text, str) or not text.strip() or not isinstance(at, int):
            raise BadRow(f"an answer is a text and its first character's position, not {text!r} and {at!r}")
    return answers
