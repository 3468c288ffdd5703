"""An augmentation: some words are said twice."""

from random import Random
from typing import Literal

from pydantic import Field

from tombola.augmentations import Augmentation, augmentations


@augmentations.register
class Stutter(Augmentation):
    """Say words twice."""

    kind: Literal["stutter"] = "stutter"
    share: float = Field(0.5, ge=0, le=1)

    def apply(self, text: str, random: Random, resources=None) -> str:
        return " ".join(f"{word} {word}" if random.random() < self.share else word for word in text.split())
