"""From a recipe's words to objectives."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from tests.tiny import tiny
from tests.training.toy import same_weights, toy_data, toy_train
from tombola.objectives.building import objective_of
from tombola.objectives.confidence import Confidence, ConfidenceLoss
from tombola.objectives.cross_entropy import CrossEntropy, CrossEntropyLoss
from tombola.objectives.freelb import FreeLB, FreeLBAdversary
from tombola.objectives.pgd import PGD, PGDAdversary
from tombola.objectives.poe import PoE, PoELoss
from tombola.objectives.r_drop import RDrop
from tombola.objectives.reweighting import Reweighting, ReweightingLoss
from tombola.objectives.settings import Adversary
from tombola.recipe.catalogue import catalogue


def test_each_loss_has_its_settings() -> None:
    assert objective_of(CrossEntropyLoss(label_smoothing=0.2)) == CrossEntropy(
        CrossEntropyLoss(label_smoothing=0.2)
    )
    assert objective_of(PoELoss(anneal=(1, 0))) == PoE(PoELoss(anneal=(1.0, 0.0)))
    assert objective_of(ReweightingLoss()) == Reweighting()
    assert objective_of(ConfidenceLoss()) == Confidence()


def test_the_adversary_is_around_r_drop_and_that_around_the_loss() -> None:
    freelb, pgd = Adversary(steps=3), Adversary(kind="pgd")
    assert (freelb, pgd) == (FreeLBAdversary(steps=3), PGDAdversary())
    assert objective_of(CrossEntropyLoss(), freelb) == FreeLB(CrossEntropy(), freelb)
    assert objective_of(PoELoss(), pgd, 0.5) == PGD(RDrop(PoE(), 0.5), pgd)
    assert objective_of(CrossEntropyLoss(), None, 0.0) == RDrop(CrossEntropy(), 0.0)


def test_the_course_of_the_training_reaches_the_innermost_loss() -> None:
    objective = objective_of(PoELoss(anneal=(1.0, 0.0)), Adversary(), r_drop=1.0)
    objective.at(0.75)
    inner = PoE(PoELoss(anneal=(1.0, 0.0)))
    assert objective != FreeLB(RDrop(inner, 1.0), Adversary())
    inner.at(0.75)
    assert objective == FreeLB(RDrop(inner, 1.0), Adversary())
    objective_of(CrossEntropyLoss()).at(0.5)


def test_all_are_listed_with_a_line_each() -> None:
    lines = dict(catalogue("losses")["losses"] + catalogue("adversaries")["adversaries"])
    assert set(lines) == {
        "cross_entropy",
        "poe",
        "reweighting",
        "confidence",
        "freelb",
        "pgd",
        "attack",
        "swaps",
    }
    assert len(set(lines.values())) == len(lines)
    assert all(20 < len(line) < 110 for line in lines.values())


@pytest.mark.parametrize("kind", ["freelb", "pgd"])
@pytest.mark.parametrize("precision", ["fp32", pytest.param("bf16", marks=pytest.mark.bf16)])
def test_the_trainer_takes_all_of_it_at_once_and_repeats_it(
    kind: Literal["freelb", "pgd"], precision: str, tmp_path: Path
) -> None:
    data = toy_data(20)
    probabilities = np.random.default_rng(0).dirichlet([1, 1], size=20).astype(np.float32)
    data = data.with_extra("bias", np.log(probabilities)).with_extra("teacher", probabilities[::-1])
    models = []
    for name in ("once", "again", "plain"):
        adversary = Adversary(kind=kind, steps=2) if name != "plain" else None
        models.append(tiny("bert", num_labels=2))
        toy_train(
            models[-1],
            tmp_path / name,
            data,
            objective=objective_of(ConfidenceLoss(), adversary, r_drop=1.0),
            epochs=1,
            accumulate=2,
            precision=precision,
        )
    assert same_weights(models[0], models[1])
    assert not same_weights(models[0], models[2])
