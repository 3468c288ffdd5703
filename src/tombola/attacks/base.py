"""What an attack is: published settings and one generator. A new attack is one file with one class."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from tombola.attacks.requests import Steps
from tombola.attacks.resources import Resources
from tombola.attacks.text import Text
from tombola.foundations.registry import Registry


@dataclass(frozen=True)
class Tools:
    """What an attack may use on one example: resources, its own random numbers, the model's special tokens."""

    resources: Resources
    random: Random
    columns: frozenset[int] | None = None  # the columns that may be changed; None: all
    unknown: str = "[UNK]"
    mask: str = "[MASK]"

    def content_words(self, text: Text) -> list[int]:
        """Positions of the words that may be changed: in an attackable column, and no stop words."""
        is_stop_word = self.resources.lexicon.is_stop_word
        return [i for i in text.positions(self.columns) if not is_stop_word(text.words[i])]


class Attack(BaseModel, ABC):
    """Settings of an attack, by default as published, and its search for a text that changes the model's label."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    paper: ClassVar[str]

    @abstractmethod
    def perturb(self, text: Text, label: int, tools: Tools) -> Steps[Text]:
        """Search from `text`, which the model gives `label`; return the last text reached, successful or not."""


attacks: Registry[type[Attack]] = Registry("attack")


def name_of(attack: Attack) -> str:
    """The name that an attack is registered under, or else its class's."""
    return next((name for name, kind in attacks.items() if type(attack) is kind), type(attack).__name__)
