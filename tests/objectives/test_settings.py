"""What recipes may say about losses and adversaries, and the sentences that a wrong one gets."""

from typing import Any

import pytest

from tombola.errors import RecipeError
from tombola.foundations.settings import Settings, checked
from tombola.objectives.confidence import ConfidenceLoss
from tombola.objectives.cross_entropy import CrossEntropyLoss
from tombola.objectives.poe import PoELoss
from tombola.objectives.reweighting import ReweightingLoss
from tombola.objectives.settings import Adversary, LossSettings


class Training(Settings):
    """Where losses and adversaries stand in a recipe."""

    loss: LossSettings = CrossEntropyLoss()
    adversary: Adversary | None = None


@pytest.mark.parametrize(
    ("raw", "loss"),
    [
        ({"kind": "cross_entropy", "label_smoothing": 0.1}, CrossEntropyLoss(label_smoothing=0.1)),
        ({"kind": "poe"}, PoELoss()),
        ({"kind": "poe", "anneal": [1, 0.8]}, PoELoss(anneal=(1.0, 0.8))),
        ({"kind": "reweighting"}, ReweightingLoss()),
        ({"kind": "confidence", "anneal": [0, 1]}, ConfidenceLoss(anneal=(0.0, 1.0))),
    ],
)
def test_a_loss_is_told_by_its_kind_and_survives_its_canonical_form(
    raw: dict[str, Any], loss: LossSettings
) -> None:
    training = checked(Training, {"loss": raw})
    assert training.loss == loss
    assert checked(Training, training.canonical()) == training


def test_the_canonical_form_keeps_the_kind_and_drops_defaults() -> None:
    assert Training().canonical() == {}
    assert Training(loss=PoELoss()).canonical() == {"loss": {"kind": "poe"}}
    assert Training(adversary=Adversary()).canonical() == {"adversary": {"kind": "freelb"}}


def test_what_losses_read_from_the_data() -> None:
    needs = {
        kind: (kind.needs_bias, kind.needs_teacher) for kind in (CrossEntropyLoss, PoELoss, ConfidenceLoss)
    }
    assert needs == {CrossEntropyLoss: (False, False), PoELoss: (True, False), ConfidenceLoss: (True, True)}
    assert ReweightingLoss.needs_bias
    assert not ReweightingLoss.needs_teacher


def test_the_adversary_is_by_default_that_of_robust_tickets_on_sst2() -> None:
    adversary = Adversary()
    assert (adversary.kind, adversary.steps, adversary.step_size) == ("freelb", 5, 0.03)
    assert (adversary.norm, adversary.radius, adversary.initial) == ("l2", None, 0.05)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            {"loss": "poe"},
            "loss: takes a mapping with a kind, one of confidence, cross_entropy, .*; not 'poe'",
        ),
        ({"loss": 0.1}, "loss: takes a mapping with a kind"),
        ({"loss": {"label_smoothing": 0.1}}, "loss: needs a kind, one of confidence, cross_entropy, poe"),
        ({"loss": {"kind": "pox"}}, r"loss: unknown loss 'pox'. Did you mean 'poe'\?"),
        ({"loss": {"kind": "poe", "anneal": 0.5}}, "loss.anneal: takes two exponents .*; not 0.5"),
        ({"loss": {"kind": "poe", "anneal": [1, -1]}}, "loss.anneal: takes two exponents of at least 0"),
        ({"loss": {"kind": "poe", "anneal": [1, 0, 1]}}, "loss.anneal: takes two exponents"),
        ({"loss": {"kind": "poe", "annael": [1, 0]}}, r"unknown key 'annael'. Did you mean 'anneal'\?"),
        (
            {"loss": {"kind": "poe", "label_smoothing": 0.1}},
            "unknown key 'label_smoothing'. Valid: anneal, kind",
        ),
        (
            {"adversary": 0.03},
            "adversary: takes a mapping with a kind, one of attack, freelb, pgd, swaps; not 0.03",
        ),
        (
            {"adversary": {"kind": "fgsm"}},
            "adversary: unknown adversary 'fgsm'. Valid: attack, freelb, pgd, swaps.",
        ),
        ({"adversary": {"steps": 0}}, "adversary.steps: must be greater than 0, not 0"),
        ({"adversary": {"radius": 0}}, "adversary.radius: must be greater than 0, not 0"),
        ({"adversary": {"radius": 0.01}}, "initial: 0.05 may start the perturbation beyond radius: 0.01"),
        ({"adversary": {"eta": 0.03}}, "adversary: unknown key 'eta'"),
    ],
)
def test_mistakes_are_named(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        checked(Training, raw)
