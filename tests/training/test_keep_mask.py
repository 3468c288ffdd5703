"""Training under a mask: removed weights stay zero, and nothing else is touched."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from transformers import PreTrainedModel, Trainer, TrainerCallback, TrainingArguments

from tests.tiny import tiny, token_ids
from tests.training.toy import TOKENIZER, random_mask, same_weights, toy_data, toy_train
from tombola.masks import Mask, Scores, Units, draw
from tombola.tasks import Collate
from tombola.training import KeepMask
from tombola.training.optimizers import AdamaxW

OPTIMIZERS: list[tuple[type[torch.optim.Optimizer], dict[str, Any]]] = [
    (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1, "fused": True}),
    (torch.optim.Adamax, {"lr": 0.01, "weight_decay": 0.1}),
    (AdamaxW, {"lr": 0.01, "weight_decay": 0.1, "foreach": True}),
    (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (torch.optim.RMSprop, {"lr": 0.001, "momentum": 0.9}),
    (torch.optim.Adafactor, {"lr": 0.01, "weight_decay": 0.1}),
]


class Inspect(TrainerCallback):
    """Keeps what a Trainer has of removed and kept weights at its end."""

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.norms: list[float] = []

    def on_pre_optimizer_step(self, args, state, control, **kwargs: Any) -> None:
        gradients = [p.grad for p in kwargs["model"].parameters() if p.grad is not None]
        self.norms.append(float(nn.utils.get_total_norm(gradients)))

    def on_train_end(self, args, state, control, **kwargs: Any) -> None:
        model, optimizer = kwargs["model"], kwargs["optimizer"]
        removed = {name: ~kept for name, kept in self.mask.tensors(model).items()}
        self.weights = [model.base_model.get_parameter(name)[gone] for name, gone in removed.items()]
        self.moments = [
            value[gone]
            for name, gone in removed.items()
            for key, value in optimizer.state[model.base_model.get_parameter(name)].items()
            if isinstance(value, torch.Tensor) and value.shape == gone.shape and key != "exp_inf"
        ]
        self.bounds = [
            optimizer.state[model.base_model.get_parameter(name)]["exp_inf"][gone]
            for name, gone in removed.items()
            if "exp_inf" in optimizer.state[model.base_model.get_parameter(name)]
        ]


def plain_trainer(model: PreTrainedModel, folder: Path, callbacks: list[Any], **options: Any) -> Trainer:
    optimizer = options.pop("optimizer", (torch.optim.AdamW, {"lr": 0.01}))
    arguments = TrainingArguments(
        str(folder), num_train_epochs=2, per_device_train_batch_size=4, save_strategy="no", report_to=[],
        disable_tqdm=True, logging_strategy="no", use_cpu=True, **options,
    )  # fmt: skip
    return Trainer(
        model,
        arguments,
        data_collator=Collate(TOKENIZER),
        train_dataset=toy_data(24),
        callbacks=callbacks,
        optimizer_cls_and_kwargs=optimizer,
    )


@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS)
def test_removed_weights_and_their_moments_stay_exactly_zero(
    tmp_path: Path, kind: type[torch.optim.Optimizer], options: dict[str, Any]
) -> None:
    model = tiny("bert", num_labels=2)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    mask = random_mask(model)
    inspect = Inspect(mask)
    plain_trainer(
        model, tmp_path, [KeepMask(mask), inspect], optimizer=(kind, options), gradient_accumulation_steps=2
    ).train()
    assert sum(values.numel() for values in inspect.weights) == mask.removed
    assert all((values == 0).all() for values in inspect.weights)
    assert inspect.moments or kind is torch.optim.Adafactor  # which factors its moments
    assert all((values == 0).all() for values in inspect.moments)
    assert all((values <= 1e-8).all() for values in inspect.bounds)  # Adamax' norm is max(.., |0| + epsilon)
    for name, kept in mask.tensors(model).items():
        moved = model.bert.get_parameter(name) != start[f"bert.{name}"]
        assert moved[kept].all()


@pytest.mark.parametrize("units", ["weight", "head+ffn"])
@pytest.mark.parametrize(
    "optimizer",
    [{"optimizer": "adamw"}, {"optimizer": "adamax"}, {"optimizer": "adamax", "bias_correction": False}],
    ids=["adamw", "adamax", "uncorrected"],
)
def test_weight_decay_leaves_removed_units_alone(
    tmp_path: Path, optimizer: dict[str, Any], units: str
) -> None:
    """[bug] In the release the decay goes on shrinking what a mask has removed; here it does not change at all."""
    model, mask = tiny("bert", num_labels=2), random_mask(tiny("bert", num_labels=2), units, kept=0.5)
    removed = {name: ~kept for name, kept in mask.tensors(model).items()}
    seen = []

    class Look(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            seen.extend(model.bert.get_parameter(name)[gone].clone() for name, gone in removed.items())

    toy_train(model, tmp_path, mask=mask, weight_decay=0.5, callbacks=[Look()], **optimizer)
    assert len(seen) == 10 * len(removed)
    assert sum(values.numel() for values in seen[: len(removed)]) > 0
    assert all((values == 0).all() for values in seen)


@pytest.mark.parametrize("granularity", ["weight", "neuron", "head", "ffn", "layer", "row", "column"])
@pytest.mark.parametrize("model_type", ["bert", "distilbert", "modernbert", "gpt2"])
def test_every_granularity_of_every_family(tmp_path: Path, granularity: str, model_type: str) -> None:
    more = {"num_hidden_layers": 3} if model_type == "modernbert" else {}  # its first layer always stays
    model = tiny(model_type, num_labels=2, **more)
    mask = random_mask(model, granularity, kept=0.5, seed=1)
    assert 0 < mask.removed < mask.count
    toy_train(model, tmp_path, mask=mask, epochs=1, weight_decay=0.1)
    tensors = mask.tensors(model)
    for name, kept in tensors.items():
        weight = model.base_model.get_parameter(name)
        assert (weight[~kept.expand_as(weight)] == 0).all()
        assert (weight[kept.expand_as(weight)] != 0).all()
    if granularity in ("neuron", "head", "ffn", "layer") and model_type != "modernbert":
        assert any(name.endswith("bias") for name in tensors)


def test_a_full_mask_changes_nothing(tmp_path: Path) -> None:
    free, held = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    toy_train(free, tmp_path / "free")
    toy_train(held, tmp_path / "held", mask=Mask.full(Units.of(held, "weight")))
    assert same_weights(free, held)


def test_masking_gradients_is_training_the_masked_function(tmp_path: Path) -> None:
    """Against a model whose weights are multiplied by the mask in its forward pass, the textbook way."""
    model, reference = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    mask = random_mask(model)
    for name, kept in mask.tensors(reference).items():
        owner, _, leaf = name.rpartition(".")
        torch.nn.utils.parametrize.register_parametrization(
            reference.bert.get_submodule(owner), leaf, Masked(kept), unsafe=True
        )
    sgd = (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9})
    seen, wanted = Inspect(mask), Inspect(mask)
    wanted.on_train_end = lambda *args, **kwargs: None  # type: ignore[method-assign]
    plain_trainer(model, tmp_path, [KeepMask(mask), seen], optimizer=sgd, max_grad_norm=0.5).train()
    plain_trainer(reference, tmp_path, [wanted], optimizer=sgd, max_grad_norm=0.5).train()
    assert seen.norms == pytest.approx(wanted.norms, rel=1e-4)
    with torch.no_grad():
        ids = token_ids()
        torch.testing.assert_close(
            model.eval()(ids).logits, reference.eval()(ids).logits, rtol=1e-4, atol=1e-5
        )


class Masked(nn.Module):
    def __init__(self, kept: torch.Tensor) -> None:
        super().__init__()
        self.kept = kept

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight * self.kept


def test_hooks_are_gone_after_training(tmp_path: Path) -> None:
    model = tiny("bert", num_labels=2)
    toy_train(model, tmp_path, mask=random_mask(model), epochs=1)
    model(token_ids(), labels=torch.tensor([0, 1, 0])).loss.backward()
    weight = model.bert.encoder.layer[0].attention.self.query.weight
    assert (weight.grad[weight == 0] != 0).any()


def test_a_data_parallel_model_is_unwrapped(tmp_path: Path) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1
    )
    try:
        model = tiny("bert", num_labels=2)
        mask = random_mask(model)
        keep = KeepMask(mask)
        parallel = DistributedDataParallel(model)
        keep.hold(parallel)
        optimizer = torch.optim.AdamW(parallel.parameters(), lr=0.01, weight_decay=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            parallel(token_ids(), labels=torch.tensor([0, 1, 0])).loss.backward()
            optimizer.step()
            keep.zero()
        for name, kept in mask.tensors(model).items():
            weight = model.bert.get_parameter(name)
            assert (weight[~kept] == 0).all()
            assert (weight.grad[~kept] == 0).all()
            assert (optimizer.state[weight]["exp_avg"][~kept] == 0).all()
    finally:
        torch.distributed.destroy_process_group()


def test_an_optimizer_that_mixes_entries_is_corrected(tmp_path: Path) -> None:
    class Mixing(torch.optim.SGD):
        @torch.no_grad()
        def step(self, closure=None):
            super().step(closure)
            for group in self.param_groups:
                for weight in group["params"]:
                    weight += 0.001

    model = tiny("bert", num_labels=2)
    mask = random_mask(model)
    plain_trainer(model, tmp_path, [KeepMask(mask)], optimizer=(Mixing, {"lr": 0.01})).train()
    for name, kept in mask.tensors(model).items():
        assert (model.bert.get_parameter(name)[~kept] == 0).all()


def test_removed_entries_of_the_head_and_of_biases_stay_zero_too(tmp_path: Path) -> None:
    model = tiny("bert", num_labels=2)
    units = Units.of(model, "weight", classifier=True, biases=True, layers=[1])
    mask = draw(Scores.magnitude(units, model), 0.5, scope="local")
    before = model.bert.encoder.layer[0].output.dense.weight.detach().clone()
    toy_train(model, tmp_path, mask=mask, weight_decay=0.01)
    head, bias = model.classifier.weight, model.bert.encoder.layer[1].output.dense.bias
    assert torch.equal(head != 0, mask["head.classifier"])
    assert torch.equal(bias != 0, mask["encoder.layer.1.output.dense.bias"])
    assert (model.bert.encoder.layer[0].output.dense.weight != before).all()
