"""A callback that attacks the model at the start of epochs and adds the adversarial texts to the training data."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from accelerate.utils import broadcast_object_list, extract_model_from_parallel
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tombola.attacks.in_the_loop import AttackAdversary, adversarial_texts
from tombola.augmentations.live import LiveTexts, Texts
from tombola.errors import TombolaError
from tombola.foundations.checksums import is_intact, sealed, write_whole
from tombola.training.loop import TrainingRun
from tombola.training.seeding import undisturbed

FOLDER = "adversarial"

AsTrained = Callable[[int], AbstractContextManager[None]]
"""Given the number of steps taken, puts the model into the form in which the next step trains it."""


def _as_is(step: int) -> AbstractContextManager[None]:
    return nullcontext()


class AttackEpochs(TrainerCallback):
    """Attacks a fraction of the training data at the start of every `every`-th epoch `after` the first ones.

    For that epoch, a successful adversarial text follows its original in the batch, with the same label. Batches
    grow, but the number of steps and the schedule stay those of a training without the attack. The texts are saved
    before the first step: a training resumed within the epoch reads them again, and one resumed before the epoch or
    during the attack finds the same texts.
    """

    def __init__(
        self,
        run: TrainingRun,
        settings: AttackAdversary,
        data: LiveTexts,
        as_trained: AsTrained,
    ) -> None:
        self.run = run
        self.settings = settings
        self.data = data
        self.folder = run.folder / FOLDER
        self.as_trained = as_trained

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Attack, or load the texts found earlier."""
        epoch = int(state.epoch)
        trained = epoch - self.settings.after
        if trained < 0 or (trained + 1) % self.settings.every:
            self.data.add({})
            return
        texts = (
            self._attack(epoch, state.global_step, kwargs["model"]) if state.is_world_process_zero else None
        )
        (texts,) = broadcast_object_list([texts])
        assert texts is not None
        self.data.add(texts)

    def _attack(self, epoch: int, step: int, model: Any) -> dict[int, Texts]:
        file = self.folder / f"epoch-{epoch + 1}.json"
        if file.is_file() and is_intact(content := file.read_bytes(), required=True):
            saved = json.loads(content)["texts"]
            return {int(index): tuple(texts) for index, texts in saved.items()}
        journal = file.with_suffix(".journal")
        with undisturbed(), self.as_trained(step):
            attacked = adversarial_texts(
                extract_model_from_parallel(model),
                self.data,
                self.settings,
                epoch=epoch,
                seed=self.run.seed,
                precision=self.run.precision,
                journal=journal,
            )
        write_whole(file, sealed({"texts": attacked}))
        journal.unlink()
        return attacked


def attacking(run: TrainingRun, as_trained: AsTrained = _as_is) -> list[TrainerCallback]:
    """Return the callback for a training with an attack in the loop, or an empty list."""
    adversary = run.settings.adversary
    if not isinstance(adversary, AttackAdversary):
        return []
    if not isinstance(run.data, LiveTexts):
        raise TombolaError("adversary: the data contains no texts to attack: pass it as LiveTexts")
    return [AttackEpochs(run, adversary, run.data, as_trained)]
