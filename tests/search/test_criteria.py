"""Taylor and Fisher scores against plain PyTorch; scores on augmented copies; shorter models."""

import pytest
import torch
from pydantic import ValidationError
from torch.nn.functional import cross_entropy

from tests.search.test_importance import batch_of, evidence_of
from tests.tiny import MODEL_TYPES, tiny
from tombola.augmentations import AugmentSettings, Resources
from tombola.augmentations.copies import augmented_copy
from tombola.errors import TombolaError
from tombola.masks import Mask, Units
from tombola.search import Evidence
from tombola.search.importance import Importance, importance
from tombola.search.layers import Layers, choose, even, layers
from tombola.tasks import Task
from tombola.tasks.split import Split


def by_hand(model, batch):
    """The gradients of a batch's mean loss, from plain PyTorch."""
    model.zero_grad()
    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    cross_entropy(logits, batch["labels"]).backward()
    return {name: (tensor.detach(), tensor.grad.clone()) for name, tensor in model.named_parameters()}


def pieces(found, layer, kind, index=0):
    """What belongs to a unit of a tiny BERT: head `index`, neuron `index`, the FFN or the layer."""
    at = f"bert.encoder.layer.{layer}."
    attention = [f"{at}attention.self.{name}" for name in ("query", "key", "value")]
    if kind == "head":
        rows = slice(4 * index, 4 * index + 4)
        for name in attention:
            yield from (tuple(one[rows] for one in found[f"{name}.{part}"]) for part in ("weight", "bias"))
        yield tuple(one[:, rows] for one in found[f"{at}attention.output.dense.weight"])
        return
    if kind == "neuron":
        yield from (
            tuple(one[index] for one in found[f"{at}intermediate.dense.{part}"])
            for part in ("weight", "bias")
        )
        yield tuple(one[:, index] for one in found[f"{at}output.dense.weight"])
        return
    ffn = [f"{at}intermediate.dense", f"{at}output.dense"]
    wholes = ffn if kind == "ffn" else [*attention, f"{at}attention.output.dense", *ffn]
    for name in wholes:
        yield from (found[f"{name}.{part}"] for part in ("weight", "bias"))


def score(criterion, found, *unit):
    products = [(weight * gradient) for weight, gradient in pieces(found, *unit)]
    if criterion != "fisher":
        total = sum(product.sum() for product in products)
        return total.abs() if criterion == "taylor" else 0.5 * total**2
    return 0.5 * sum((product**2).sum() for product in products)


@pytest.mark.parametrize("criterion", ["taylor", "fisher", "mask_fisher"])
@pytest.mark.parametrize("kind", ["head", "neuron", "ffn", "layer"])
def test_scores_are_those_of_the_formula(criterion, kind):
    model, batches = tiny("bert"), [batch_of(0), batch_of(1)]
    units = Units.of(model, kind)
    scores = importance(Importance(units=kind, criterion=criterion), model, units, evidence_of(*batches))
    gradients = [by_hand(model, batch) for batch in batches]
    for group in units.groups:
        expected = torch.stack(
            [
                torch.stack([score(criterion, found, group.layer, kind, index) for found in gradients]).mean()
                for index in range(group.count)
            ]
        )
        torch.testing.assert_close(scores[group.name], expected, rtol=1e-4, atol=1e-7)


def test_taylor_tells_what_a_small_change_does_to_the_loss():
    model, batch = tiny("bert"), batch_of()
    units = Units.of(model, "head")
    scores = importance(Importance(units="head", criterion="taylor"), model, units, evidence_of(batch))
    with torch.no_grad():
        before = cross_entropy(model(batch["input_ids"], batch["attention_mask"]).logits, batch["labels"])
        kept = Mask.full(units)
        head = {name: kept[name].clone() for name in kept}
        head["layers.0.heads"][2] = False
        for name, stays in Mask.from_bools(units, head).tensors(model).items():
            model.base_model.get_parameter(name).mul_(torch.where(stays, 1.0, 1 - 1e-3))
        after = cross_entropy(model(batch["input_ids"], batch["attention_mask"]).logits, batch["labels"])
    assert float((after - before).abs() / 1e-3) == pytest.approx(float(scores["layers.0.heads"][2]), rel=0.1)


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_every_family_has_scores(model_type):
    model = tiny(model_type)
    for kind in ("head+neuron", "layer"):
        units = Units.of(model, kind)
        scores = importance(Importance(units=kind, criterion="fisher"), model, units, evidence_of(batch_of()))
        assert all((value > 0).any() for value in scores.values())


def test_both_is_the_mean_of_clean_and_augmented():
    model, augment = tiny("bert"), AugmentSettings(of=("typos",))
    units = Units.of(model, "head")
    clean, changed = batch_of(0), batch_of(1)
    evidence = Evidence(0, lambda count: iter([clean]), lambda settings: lambda count: iter([changed]))
    found = {
        inputs: importance(
            Importance(
                units="head",
                criterion="taylor",
                inputs=inputs,
                augment=None if inputs == "clean" else augment,
            ),
            model,
            units,
            evidence,
        )["layers.0.heads"]
        for inputs in ("clean", "augmented", "both")
    }
    torch.testing.assert_close(found["both"], (found["clean"] + found["augmented"]) / 2)
    assert not torch.equal(found["clean"], found["augmented"])
    settings = Importance(units="head", inputs="augmented", augment=augment)
    with pytest.raises(TombolaError, match="no augmented copies"):
        importance(settings, model, units, evidence_of(clean))


def test_scoring_reports_each_batch_of_clean_and_augmented_texts():
    model, augment = tiny("bert"), AugmentSettings(of=("typos",))
    seen = []

    def batches(count):
        return iter([batch_of(seed) for seed in range(count)])

    evidence = Evidence(
        0, batches, lambda settings: batches, progress=lambda done, steps: seen.append((done, steps))
    )
    settings = Importance(units="head", criterion="fisher", inputs="both", augment=augment, batches=3)
    importance(settings, model, Units.of(model, "head"), evidence)
    assert seen == [(done, 6) for done in range(1, 7)]


def test_scoring_changes_every_text():
    inputs = {"units": "head", "inputs": "augmented"}
    assert Importance(**inputs, augment={"of": ["typos"]}).augment.share == 1
    with pytest.raises(ValidationError, match="scoring changes every text, not 30% of them"):
        Importance(**inputs, augment={"of": ["typos"], "share": 0.3})
    with pytest.raises(ValidationError, match="only works in training"):
        Importance(**inputs, augment={"of": ["typos"], "consistency": 1.0})


def test_every_text_of_the_copy_is_changed_and_the_labels_stay():
    task = Task.named("sst2")
    texts = [("a wonderful little production number",), ("an awfully tedious evening together",)]
    split = Split(task, "train", texts, [1, 0], ["a", "b"], "here")
    augment = AugmentSettings(of=({"kind": "typos", "share": 1.0},), share=0.0)
    copy = augmented_copy(split, augment, 0, "search.inputs", Resources())
    assert all(one != other for one, other in zip(copy.texts, texts, strict=True))
    assert (copy.labels, copy.ids) == (split.labels, split.ids)


class TestLayers:
    @pytest.fixture
    def model(self):
        return tiny("bert", num_hidden_layers=6)

    def kept(self, model, keep, sparsity, *batches, among=None):
        settings = Layers(keep=keep, layers=among)
        units = settings.units_of(model)
        mask = choose(
            settings, layers(settings, model, units, evidence_of(*batches)), sparsity, "global", None
        )
        return [index for index in among or range(6) if mask[f"layers.{index}"].all()]

    def test_the_first(self, model):
        assert self.kept(model, "first", 0.5) == [0, 1, 2]
        assert self.kept(model, "first", 1 / 3) == [0, 1, 2, 3]

    def test_even(self, model):
        assert self.kept(model, "even", 0.5) == [0, 2, 5]
        assert even(12, 4) == [0, 4, 7, 11]
        assert [len(set(even(12, left))) for left in range(13)] == list(range(13))

    @pytest.mark.parametrize(("keep", "kept"), [("first", [2, 3]), ("even", [2, 5])])
    def test_among_some_layers(self, model, keep, kept):
        assert self.kept(model, keep, 0.5, among=(2, 3, 4, 5)) == kept

    def test_the_important(self, model):
        scores = importance(
            Importance(units="layer", criterion="taylor"),
            model,
            Units.of(model, "layer"),
            evidence_of(batch_of()),
        )
        order = sorted(range(6), key=lambda index: -float(scores[f"layers.{index}"]))
        assert self.kept(model, "importance", 0.5, batch_of()) == sorted(order[:3])
