"""Augmentation during training: which examples change, how, and with which random numbers."""

from collections.abc import Collection
from hashlib import blake2b
from random import Random
from typing import Literal, Self

from pydantic import Field

from tombola.augmentations.base import NOTHING, Augmentation, Resources, pick
from tombola.foundations.settings import Settings


class AugmentSettings(Settings):
    """The label-preserving changes of training texts, and the fraction of texts to change."""

    of: tuple[Augmentation, ...] = Field(min_length=1, description="augmentations, by name or with settings")
    share: float = Field(0.5, ge=0, le=1, description="share of the examples to change in each epoch")
    combine: Literal["one", "all"] = Field(
        "one", description="apply one randomly chosen augmentation to each text, or all of them in order"
    )
    consistency: float = Field(
        0.0,
        ge=0,
        description="weight of the symmetric KL between the outputs for a text and its changed copy; trains on both, "
        "so a step takes 1 + share times as long; 0: train on the changed texts alone",
    )
    seed: int = Field(0, description="seed of the changes, in addition to the training's seed")

    def of_every_text(self) -> Self:
        """Return the same changes for copies of the data in which every text is changed."""
        return self.model_copy(update={"share": 1.0, "consistency": 0.0})


class Augmenter:
    """Changes the texts of training examples on the fly.

    The change of an example depends only on the seeds, its id and the step, not on the examples before it: another
    order, another number of workers or a resumed training gives the same bytes. So each text has its own generator,
    seeded by a hash of these. Seeding Python's Mersenne Twister takes a third of the time of NumPy's Philox, it draws
    single numbers ten times as fast, and its `random()` is guaranteed never to change.

    Args:
        settings: The augmentation settings.
        resources: The resources of the augmentations, such as a lexicon.
        run_seed: The seed of the training.
    """

    def __init__(self, settings: AugmentSettings, resources: Resources = NOTHING, run_seed: int = 0) -> None:
        for augmentation in settings.of:
            augmentation.check(resources)
        self.settings = settings
        self.resources = resources
        self.run_seed = run_seed

    def texts(
        self, texts: tuple[str, ...], example_id: str, step: int, sides: Collection[int] | None = None
    ) -> tuple[str, ...]:
        """Return the texts of an example at a step.

        Args:
            texts: One text, or the two of a pair, which are changed independently.
            example_id: The example's id.
            step: The step or the epoch, which determines the change.
            sides: The texts that may be changed, by position; all by default. If the label is a span of a text, that
                text must not change.
        """
        if self._random(example_id, step, "share").random() >= self.settings.share:
            return texts
        return tuple(
            text if sides is not None and side not in sides else self._changed(text, example_id, step, side)
            for side, text in enumerate(texts)
        )

    def _changed(self, text: str, example_id: str, step: int, side: int) -> str:
        random = self._random(example_id, step, str(side))
        kinds = self.settings.of
        for augmentation in kinds if self.settings.combine == "all" else (pick(kinds, random),):
            text = augmentation.apply(text, random, self.resources)
        return text

    def _random(self, example_id: str, step: int, purpose: str) -> Random:
        key = f"{self.settings.seed}\0{self.run_seed}\0{step}\0{purpose}\0{example_id}"
        return Random(int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()))
