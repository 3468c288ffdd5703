"""Each control destroys exactly what it says, and nothing else."""

import pytest
import torch

from tests.tiny import tiny
from tombola.masks import Mask, Scores, Units, draw
from tombola.masks.perturb import perturb
from tombola.models.controls import Noise, Reinitialise, Shuffle, apply_control


def changed(control, seed=3):
    model, before = tiny("bert"), tiny("bert").state_dict()
    apply_control(control, model, seed)
    return before, model.state_dict(), Units.of(model, "weight").matrices(model)


def test_shuffling_keeps_the_entries_of_each_matrix_and_moves_them():
    before, after, matrices = changed(Shuffle(kind="shuffle"))
    for name in matrices:
        one, two = before[f"bert.{name}"], after[f"bert.{name}"]
        assert torch.equal(one.flatten().sort().values, two.flatten().sort().values)
        assert not torch.equal(one, two)
    assert torch.equal(
        before["bert.embeddings.word_embeddings.weight"], after["bert.embeddings.word_embeddings.weight"]
    )
    assert torch.equal(before["classifier.weight"], after["classifier.weight"])


def test_shuffling_layers_moves_them_whole():
    before, after, _ = changed(Shuffle(kind="shuffle", across="layers"), seed=1)
    name = "bert.encoder.layer.{}.output.dense.weight"
    assert torch.equal(after[name.format(0)], before[name.format(1)])
    assert torch.equal(after[name.format(1)], before[name.format(0)])


def test_reinitialising_draws_the_encoder_anew_and_keeps_the_head():
    before, after, matrices = changed(Reinitialise(kind="reinitialise"))
    for name in matrices:
        assert not torch.equal(before[f"bert.{name}"], after[f"bert.{name}"])
        assert after[f"bert.{name}"].std() == pytest.approx(0.02, rel=0.3)
    assert (after["bert.encoder.layer.0.output.LayerNorm.weight"] == 1).all()
    assert torch.equal(before["classifier.weight"], after["classifier.weight"])


def test_noise_has_the_asked_size_relative_to_each_matrix():
    before, after, matrices = changed(Noise(kind="noise", sigma=0.5))
    for name in matrices:
        one, two = before[f"bert.{name}"], after[f"bert.{name}"]
        assert (two - one).std() / one.std() == pytest.approx(0.5, rel=0.2)


@pytest.mark.parametrize(
    "control", [Shuffle(kind="shuffle"), Reinitialise(kind="reinitialise"), Noise(kind="noise")]
)
def test_controls_depend_on_the_seed_alone(control):
    _, one, _ = changed(control, seed=3)
    torch.rand(5)
    _, same, _ = changed(control, seed=3)
    _, other, _ = changed(control, seed=4)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_perturbing_swaps_exactly_the_share_and_keeps_the_sparsity(share):
    model = tiny("bert")
    units = Units.of(model, "weight")
    mask = draw(
        Scores.total(units, {n: w.detach().abs() for n, w in units.matrices(model).items()}), sparsity=0.3
    )
    other = perturb(mask, share, seed=1)
    swaps = min(int(share * mask.kept + 0.5), mask.removed)
    assert other.removed == mask.removed
    assert (mask & ~other).kept == (other & ~mask).kept == swaps
    assert perturb(mask, share, seed=1) == other


def test_perturbing_a_full_mask_changes_nothing():
    units = Units.of(tiny("bert"), "head")
    assert perturb(Mask.full(units), 0.5, seed=1) == Mask.full(units)
