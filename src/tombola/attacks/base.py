"""The interface of attacks: published settings and one generator. A new attack is one file with one class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import yaml
from pydantic import Field

from tombola.attacks.requests import Steps
from tombola.attacks.resources import Resources
from tombola.attacks.text import Text
from tombola.errors import RecipeError
from tombola.foundations.choices import Choice, Choices
from tombola.foundations.settings import checked
from tombola.foundations.yaml12 import parse_yaml

HERE = "tombola.attacks"

attacks: Choices[type[Attack]] = Choices(
    "attack",
    [
        f"{HERE}.{name}"
        for name in (
            "bert_attack",
            "deepwordbug",
            "embedding_swap",
            "pwws",
            "random_substitution",
            "textbugger",
            "textfooler",
        )
    ],
)


@dataclass(frozen=True)
class Tools:
    """What an attack may use on one example: resources, its own random generator, the model's special tokens."""

    resources: Resources
    random: Random
    columns: frozenset[int] | None = None  # the columns that may be changed; None: all
    unknown: str = "[UNK]"
    mask: str = "[MASK]"

    def content_words(self, text: Text) -> list[int]:
        """Return the positions of the words that may be changed: in an attackable column, and not stop words."""
        is_stop_word = self.resources.lexicon.is_stop_word
        return [i for i in text.positions(self.columns) if not is_stop_word(text.words[i])]


class Attack(Choice):
    """Settings of an attack, with published defaults, and its search for a text that changes the model's label."""

    choices: ClassVar = attacks
    tag: ClassVar[str] = "name"
    by_name: ClassVar[bool] = True
    unhashed: ClassVar[frozenset[str]] = frozenset({"called"})

    paper: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    """The resources it needs that are bundled only for English (lexicon, vectors, encoder) or never (masked LM)."""

    texts_per_word: ClassVar[float] = 5.0
    """About how many texts it asks the model and the encoder for, per word of a text, as a base for estimates."""

    name: str
    called: str | None = Field(
        default=None,
        min_length=1,
        description="name in results; by default the attack's name and its changed settings",
    )

    @abstractmethod
    def perturb(self, text: Text, label: int, tools: Tools) -> Steps[Text]:
        """Search from `text`, which the model labels `label`; return the last text reached, successful or not."""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the search itself."""
        return {key: value for key, value in self.model_dump().items() if key not in ("name", "called")}

    @property
    def label(self) -> str:
        """The attack's name in results; the plain name stands for the published settings."""
        if self.called is not None:
            return self.called
        changed = self.model_dump(exclude_defaults=True)
        settings = ", ".join(f"{key}={value}" for key, value in changed.items() if key != "name")
        return f"{self.name}({settings})" if settings else self.name


def configure(name: str, settings: Mapping[str, Any]) -> Attack:
    """Return an attack with some settings changed.

    Args:
        name: The registered name of the attack.
        settings: Changes to the published settings. Strings are parsed as YAML: "0.7" is a number.
    """
    kind = attacks[name]
    raw = {key: _parse_value(key, value) for key, value in settings.items()}
    if "name" in raw:
        raise RecipeError(f"{name}: the name cannot be changed; choose another attack instead")
    return checked(kind, raw, name)


def _parse_value(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_yaml(value)
    except yaml.YAMLError:
        raise RecipeError(f"{key}: {value!r} is not valid YAML") from None
