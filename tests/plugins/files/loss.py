"""A loss and an adversary: focal loss, and one step of the fast gradient method."""

from dataclasses import dataclass
from typing import Literal

import torch

from tombola.objectives import LogitLoss
from tombola.objectives.adversarial import Adversarial
from tombola.objectives.perturbation import perturbed
from tombola.objectives.settings import Ascent, LossSettings, adversary, loss


class FocalLoss(LossSettings):
    """Settings of the focal loss."""

    kind: Literal["focal"] = "focal"
    gamma: float = 2.0


@loss(FocalLoss)
@dataclass
class Focal(LogitLoss):
    """Focal loss: easy examples count less."""

    settings: FocalLoss

    def of_logits(self, logits, batch):
        right = logits.log_softmax(-1).gather(1, batch["labels"][:, None])
        return -((1 - right.exp()) ** self.settings.gamma * right).mean()


class FGMAdversary(Ascent):
    """Settings of the fast gradient method."""

    kind: Literal["fgm"] = "fgm"


@adversary(FGMAdversary)
class FGM(Adversarial):
    """FGM: the loss after one step."""

    def loss(self, model, batch):
        with perturbed(model, batch, self.adversary) as delta:
            delta.track(True)
            delta.ascend(*torch.autograd.grad(self.inner.loss(model, batch), delta.values))
            return self.inner.loss(model, batch)
