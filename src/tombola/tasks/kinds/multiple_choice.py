"""Multiple choice: choose the answer that a decoder finds most likely after a prompt."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from tombola.errors import DataError
from tombola.tasks.definition import Names
from tombola.tasks.kinds import KindSettings, Row, settings_of, task_kinds
from tombola.tasks.kinds.decoders import AnswerKind
from tombola.tasks.prompts import check_prompt, fill
from tombola.tasks.readers import BadRow
from tombola.tasks.rows import Columns

if TYPE_CHECKING:
    from tombola.tasks.continuations import Continuation
    from tombola.tasks.split import Split
    from tombola.tasks.task import Task

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class ChoiceSettings(KindSettings):
    """The prompt before an answer, and the source of the answers."""

    prompt: str = Field(
        "",
        description="text before the answer, with columns of `text` in braces, e.g. `Question: {question}`; by default "
        "the texts, one per line",
    )
    choices: Names = Field(
        ["choices"], description="column with the list of answers, or one column per answer"
    )
    delimiter: str = Field(" ", description="text between the prompt and the answer")


@task_kinds("multiple-choice")
class MultipleChoice(AnswerKind):
    """A prompt and several answers, one of which is correct."""

    about = "the likeliest of several answers, for decoders"
    text_columns = (1, 2, 3, 4)
    settings = ChoiceSettings
    evaluator = "choices"

    def check(self, task: "Task") -> None:
        """Check that the prompt names text columns."""
        super().check(task)
        if prompt := task.settings.get("prompt"):
            check_prompt(str(prompt), task.text)

    def texts(self, task: "Task", columns: Columns) -> Callable[[list[Any]], tuple[str, ...]]:
        """Return a function that reads the filled-in prompt and the answers."""
        settings, read = settings_of(task, ChoiceSettings), {name: columns.text(name) for name in task.text}
        choices = _reader(settings, columns)

        def texts(values: list[Any]) -> tuple[str, ...]:
            prompt = _prompt(settings, {name: reader(values) for name, reader in read.items()})
            return (prompt, *_listed(choices(values))[0])

        return texts

    def target(self, task: "Task", columns: Columns) -> Callable[[list[Any], tuple[str, ...]], int]:
        """Return a function that reads the correct answer's index; `label` has its index, letter, name or text."""
        value, choices = columns.value("label"), _reader(settings_of(task, ChoiceSettings), columns)

        def read(values: list[Any], _: tuple[str, ...]) -> int:
            answers, names = _listed(choices(values))
            return _place(value(values), answers, names)

        return read

    def given(self, task: "Task", row: Row, number: int) -> tuple[str, ...]:
        """Return the texts of a mapping with the text columns and the answers."""
        settings = settings_of(task, ChoiceSettings)
        wanted = [*task.text, *settings.choices]
        if not isinstance(row, Mapping) or not set(wanted) <= set(row):
            raise DataError(
                f"Row {number}: {row!r} where {task.name} reads a mapping with {', '.join(wanted)}."
            )
        columns = [row[name] for name in settings.choices]
        try:
            answers, _ = _listed(columns[0] if len(columns) == 1 else columns)
        except BadRow as bad:
            raise DataError(f"Row {number}: {bad}.") from None
        return (_prompt(settings, {name: str(row[name]) for name in task.text}), *answers)

    def unknown(self, task: "Task", texts: tuple[str, ...]) -> int:
        """Return the first answer."""
        return 0

    def answers(self, split: "Split") -> "list[Continuation]":
        """Return each prompt with each of its choices."""
        from tombola.tasks.continuations import Continuation

        delimiter = settings_of(split.task, ChoiceSettings).delimiter
        return [
            Continuation(example, choice, prompt, delimiter + answer)
            for example, (prompt, *answers) in enumerate(split.texts)
            for choice, answer in enumerate(answers)
        ]


def _prompt(settings: ChoiceSettings, texts: Mapping[str, str]) -> str:
    return fill(settings.prompt, texts) if settings.prompt else "\n".join(texts.values())


def _reader(settings: ChoiceSettings, columns: Columns) -> Callable[[list[Any]], Any]:
    """Return a function that reads the answers from a row: a list, or several columns."""
    read = [columns.value(name) for name in settings.choices]
    return read[0] if len(read) == 1 else lambda values: [reader(values) for reader in read]


def _listed(raw: Any) -> tuple[list[str], list[str]]:
    """Return the answers and their names, if any, as in ARC's {text: […], label: [A, …]}."""
    names: list[str] = []
    if isinstance(raw, Mapping):
        names = [str(name) for name in raw.get("label", ())]
        raw = raw.get("text")
    if not isinstance(raw, list | tuple) or len(raw) < 2:
        raise BadRow(f"the choices are not a list of at least two answers: {raw!r}")
    answers = [str(answer) for answer in raw]
    if not all(answer.strip() for answer in answers):
        raise BadRow("an answer is empty")
    if names and len(names) != len(answers):
        raise BadRow(f"{len(names)} names for {len(answers)} answers")
    return answers, names


def _place(raw: Any, answers: list[str], names: list[str]) -> int:
    name = "" if raw is None else str(raw).strip()
    if name in names:
        return names.index(name)
    if name.isdecimal() and int(name) < len(answers):
        return int(name)
    if name in answers:
        return answers.index(name)
    if len(name) == 1 and name.upper() in LETTERS[: len(answers)]:
        return LETTERS.index(name.upper())
    raise BadRow(
        f"unknown label {raw!r}; expected the index of the correct answer from 0, its letter, its name or its text"
    )
