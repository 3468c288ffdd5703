"""Masks in the formats of the published code bases, written here as those write them."""

import json
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.utils import prune
from transformers import AutoModel
from typer.testing import CliRunner

from tests.pipeline.running import execute
from tests.tiny import tiny
from tests.world import World
from tombola.cli import app
from tombola.errors import DataError, RecipeError, UnknownName
from tombola.masks import MASK, Mask, Scores, Units, draw, fingerprint
from tombola.masks.layout import parameters_of
from tombola.masks.tensor_files import read_tensors
from tombola.models.loading import load_model
from tombola.pipeline.planner import plan_cell
from tombola.recipe.grid import expand
from tombola.store.store import Store
from tombola.tasks import Task
from tombola.tickets.importing import import_mask

MATRICES = [
    *("attention.self.query", "attention.self.key", "attention.self.value"),
    *("attention.output.dense", "intermediate.dense", "output.dense"),
]


def encoder(world: World) -> Any:
    return AutoModel.from_pretrained(world.model)


def pruned(
    model: Any, share: float, layers: range = range(2), pooler: bool = True
) -> dict[str, torch.Tensor]:
    """What BERT-Tickets saves: the buffers of torch's pruning, below the name of a classifier's encoder."""
    parts = [model.get_submodule(f"encoder.layer.{layer}.{name}") for layer in layers for name in MATRICES]
    parts += [model.pooler.dense] if pooler else []
    prune.global_unstructured([(part, "weight") for part in parts], prune.L1Unstructured, amount=share)
    return {f"bert.{name}": value for name, value in model.state_dict().items() if "mask" in name}


def imported(world: World, source: Any, folder: Path, kind: Any = "bert_tickets", **options: Any) -> Mask:
    mask = import_mask(source, str(world.model), kind, folder / "out", **options)
    assert mask == Mask.load(folder / "out" / MASK)
    return mask


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_a_mask_of_bert_tickets_keeps_every_bit(world: World, tmp_path: Path, zipped: bool) -> None:
    saved = pruned(encoder(world), 0.3)
    torch.save(saved, tmp_path / "mask.pt", _use_new_zipfile_serialization=zipped)
    mask = imported(world, tmp_path / "mask.pt", tmp_path)
    assert mask.removed == sum(int((value == 0).sum()) for value in saved.values()) == round(0.3 * mask.count)
    for name, kept in mask.items():
        assert torch.equal(kept, saved[f"bert.{name}.weight_mask"] != 0)
    model = encoder(world)
    assert mask.base == fingerprint(model)
    assert mask == draw(Scores.magnitude(Units.of(model, "weight"), model), 0.3)


def test_whole_checkpoints_bools_and_bare_names_are_understood(world: World, tmp_path: Path) -> None:
    model = encoder(world)
    saved = pruned(model, 0.5)
    whole = {f"module.bert.{name}": value for name, value in model.state_dict().items()}
    plain = {name.removeprefix("bert.").removesuffix("_mask"): value.bool() for name, value in saved.items()}
    masks = []
    for content in (saved, whole, OrderedDict(plain)):
        torch.save(content, tmp_path / "mask.pt")
        masks.append(imported(world, tmp_path / "mask.pt", tmp_path))
    assert masks[0] == masks[1] == masks[2]


def test_a_language_models_mask_has_no_pooler_and_some_cover_few_layers(world: World, tmp_path: Path) -> None:
    torch.save(pruned(encoder(world), 0.5, pooler=False), tmp_path / "mask.pt")
    mask = imported(world, tmp_path / "mask.pt", tmp_path)
    assert "pooler" not in mask.by_kind()
    assert mask.weight_sparsity == 0.5
    torch.save(pruned(encoder(world), 0.5, layers=range(1, 2), pooler=False), tmp_path / "mask.pt")
    assert set(imported(world, tmp_path / "mask.pt", tmp_path).by_layer()) == {1}


def test_scores_of_srnets_need_their_threshold_and_the_head_its_task(world: World, tmp_path: Path) -> None:
    """Mask training saves scores, for the classifier and biases too if those are masked."""
    model = load_model(world.model, Task.named(str(world.task)), seed=1)
    generator = torch.Generator().manual_seed(0)
    scores = {
        f"{module}.{kind}_mask": 0.02 * torch.rand(getattr(part, kind).shape, generator=generator)
        for module, part in model.named_modules()
        if isinstance(part, torch.nn.Linear)
        for kind in ("weight", "bias")
    }
    folder = tmp_path / "0.5"
    folder.mkdir()
    torch.save(scores, folder / "mask.pt")
    with pytest.raises(DataError, match=r"scores from .* not bits: set the threshold"):
        imported(world, folder, tmp_path, "srnets", task=str(world.task))
    mask = imported(world, folder, tmp_path, "srnets", task=str(world.task), threshold=0.01)
    assert mask.removed == sum(int((value <= 0.01).sum()) for value in scores.values())
    assert torch.equal(mask["head.classifier"], scores["classifier.weight_mask"] > 0.01)
    assert torch.equal(mask["pooler.dense.bias"], scores["bert.pooler.dense.bias_mask"] > 0.01)
    mask.check(model, base=fingerprint(model))
    with pytest.raises(DataError, match=r"2 of the .* 'classifier.weight'.*or leave the head out"):
        imported(world, folder, tmp_path, "srnets", threshold=0.01)
    without = imported(
        world, folder, tmp_path, "srnets", task=str(world.task), threshold=0.01, keep_head=False
    )
    assert without == mask.without("classifier")


def test_a_folder_with_a_file_for_each_matrix(world: World, tmp_path: Path) -> None:
    saved = pruned(encoder(world), 0.7)
    folder = tmp_path / "masks"
    folder.mkdir()
    for name, value in saved.items():
        torch.save(value.bool(), folder / f"{name}.pt")
    torch.save(saved, tmp_path / "mask.pt")
    assert imported(world, folder, tmp_path, "srnets") == imported(world, tmp_path / "mask.pt", tmp_path)


def test_a_folder_with_several_masks_of_the_same_matrices_is_refused(tmp_path: Path) -> None:
    for number in (1, 2):
        torch.save({"query.weight_mask": torch.full((2, 2), number - 1)}, tmp_path / f"mask_{number}.pt")
    with pytest.raises(DataError, match=r"mask_2\.pt and a file before it both contain 'query\.weight_mask'"):
        read_tensors(tmp_path)


def test_super_tickets_lists_of_heads_and_ffns(world: World, tmp_path: Path) -> None:
    heads, ffns = tmp_path / "mask_3_heads", tmp_path / "mask_1_ffn"
    for folder in (heads, ffns):
        folder.mkdir()
    (heads / "heads_to_mask.json").write_text(json.dumps({"0": {"0": [1, 3], "1": [0]}}))
    (ffns / "ffn_to_mask.json").write_text(json.dumps({"0": [1]}))
    mask = imported(world, [heads, ffns], tmp_path, "super_tickets")
    assert mask.units.granularity == "head+ffn"
    assert mask["layers.0.heads"].tolist() == [True, False, True, False]
    assert mask["layers.1.heads"].tolist() == [False, True, True, True]
    assert (mask["layers.0.ffn"].item(), mask["layers.1.ffn"].item()) == (True, False)
    assert mask.removed == 4
    alone = imported(world, heads / "heads_to_mask.json", tmp_path, "super_tickets")
    assert (alone.units.granularity, alone.removed) == ("head", 3)


@pytest.mark.parametrize(
    ("heads", "ffns", "first"),
    [("0:1,3 1:0", "1", 0), ("0:1 0:3 1:0", "1", 0), ("1:2,4 2:1", "2\n", 1), ("0: 1 3\n1: 0\n", "1,", 0)],
)
def test_lists_in_text(world: World, tmp_path: Path, heads: str, ffns: str, first: int) -> None:
    (tmp_path / "heads.txt").write_text(heads)
    (tmp_path / "ffns_to_mask.txt").write_text(ffns)
    mask = imported(
        world, [tmp_path / "heads.txt", tmp_path / "ffns_to_mask.txt"], tmp_path, "super_tickets", first=first
    )
    assert mask["layers.0.heads"].tolist() == [True, False, True, False]
    assert mask["layers.1.heads"].tolist() == [False, True, True, True]
    assert mask["layers.1.ffn"].item() is False
    assert mask.removed == 4


def test_a_file_of_several_tasks_needs_an_entry(world: World, tmp_path: Path) -> None:
    (tmp_path / "heads_to_mask.json").write_text(json.dumps({"0": {"0": [1]}, "3": {"1": [2, 3]}}))
    with pytest.raises(DataError, match=r"several tasks \(0, 3\)"):
        imported(world, tmp_path / "heads_to_mask.json", tmp_path, "super_tickets")
    assert imported(world, tmp_path / "heads_to_mask.json", tmp_path, "super_tickets", entry="3").removed == 2


WRONG_LISTS: dict[str, tuple[Any, str]] = {
    "layer": ({"7": [0]}, "there is no layer 7: the model has layers 0 to 1"),
    "head": ({"1": [4]}, "there is no head 4 in layer 1, which has heads 0 to 3"),
    "words": ({"one": [0]}, "'one' is not a layer or head number"),
    "no list": ({"1": 3}, "expected a list of numbers, not 3"),
    "list": ([1], "expected an object"),
}


@pytest.mark.parametrize(("content", "reason"), WRONG_LISTS.values(), ids=WRONG_LISTS)
def test_lists_that_do_not_fit(world: World, tmp_path: Path, content: Any, reason: str) -> None:
    (tmp_path / "heads_to_mask.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=reason):
        imported(world, tmp_path / "heads_to_mask.json", tmp_path, "super_tickets")


def test_tensors_that_do_not_fit(world: World, tmp_path: Path) -> None:
    saved, path = pruned(encoder(world), 0.5), tmp_path / "mask.pt"
    first = next(iter(saved))

    def refused(content: Any) -> str:
        torch.save(content, path)
        with pytest.raises(DataError) as caught:
            imported(world, path, tmp_path)
        assert not (tmp_path / "out").exists()
        return str(caught.value)

    assert "has shape (16, 24), not" in refused({**saved, first: saved[first].new_ones(16, 24)})
    assert "1 of the model's 13 prunable tensors have no mask" in refused(
        {name: value for name, value in saved.items() if name != first}
    )
    assert "not in this model" in refused(
        {**saved, "bert.encoder.layer.9.output.dense.weight_mask": saved[first]}
    )
    assert "is not a matrix that can be pruned" in refused(
        {**saved, "bert.embeddings.word_embeddings.weight_mask": torch.ones(len(saved), 16)}
    )
    assert "'notes' is a str, not a tensor" in refused({**saved, "notes": "best"})
    assert "contains a list" in refused(list(saved.values()))
    path.write_bytes(path.read_bytes()[:400])
    with pytest.raises(DataError):
        imported(world, path, tmp_path)


def test_a_threshold_for_bits_is_a_mistake(world: World, tmp_path: Path) -> None:
    torch.save(pruned(encoder(world), 0.5), tmp_path / "mask.pt")
    with pytest.raises(DataError, match="contain bits, not scores"):
        imported(world, tmp_path / "mask.pt", tmp_path, threshold=0.01)


class Malicious:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return (Path.touch, (self.target,))


def test_no_code_of_any_file_is_run(world: World, tmp_path: Path) -> None:
    target = tmp_path / "made"
    for zipped in (True, False):
        torch.save({"x": Malicious(target)}, tmp_path / "mask.pt", _use_new_zipfile_serialization=zipped)
        with pytest.raises(DataError, match="contains more than tensors"):
            imported(world, tmp_path / "mask.pt", tmp_path)
    (tmp_path / "mask.pt").write_bytes(pickle.dumps(Malicious(target)))
    with pytest.raises(DataError, match="a plain pickle, which can run any code"):
        imported(world, tmp_path / "mask.pt", tmp_path)
    with zipfile.ZipFile(tmp_path / "mask.pt", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Malicious(target)))
        archive.writestr("archive/version", "3")
    with pytest.raises(DataError):
        imported(world, tmp_path / "mask.pt", tmp_path)
    assert not target.exists()
    pickle.loads(pickle.dumps(Malicious(target)))
    assert target.exists(), "the pickles would have made a file"


FOUND = {"{}": "JSON", "": "empty", "hello": "something else"}


@pytest.mark.parametrize(("content", "kind"), FOUND.items(), ids=["json", "empty", "text"])
def test_what_is_no_file_of_tensors_is_named(world: World, tmp_path: Path, content: str, kind: str) -> None:
    (tmp_path / "mask.pt").write_text(content)
    with pytest.raises(DataError, match=f"it is {kind}"):
        imported(world, tmp_path / "mask.pt", tmp_path)


def test_mistakes_in_the_call(world: World, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="super_tickets"):
        imported(world, tmp_path, tmp_path, "super_ticket")
    with pytest.raises(DataError, match="no file or folder"):
        imported(world, tmp_path / "gone", tmp_path)
    with pytest.raises(RecipeError, match="lists of heads"):
        imported(world, tmp_path, tmp_path, "super_tickets", threshold=0.1)
    with pytest.raises(DataError, match=r"neither a mask\.pt"):
        imported(world, tmp_path, tmp_path)


def test_an_imported_mask_lies_on_its_model_as_in_the_program_that_made_it(
    world: World, tmp_path: Path
) -> None:
    reference, model = encoder(world), encoder(world)
    torch.save(pruned(reference, 0.6), tmp_path / "mask.pt")
    imported(world, tmp_path / "mask.pt", tmp_path).apply(model)
    mine = parameters_of(model)
    for name, part in reference.named_modules():
        if hasattr(part, "weight_mask"):
            assert torch.equal(mine[f"{name}.weight"], part.weight)


def test_fused_matrices_are_cut_apart(tmp_path: Path) -> None:
    from tombola.masks.importing import mask_from_tensors

    model = tiny("gpt2", "base")
    units = Units.of(model, "weight")
    expected = draw(Scores.magnitude(units, model), 0.5)
    bits = dict(units.spread(expected))
    assert (
        mask_from_tensors(model, {f"transformer.{name}_mask": value.bool() for name, value in bits.items()})
        == expected
    )


def test_the_command_imports_and_a_recipe_takes_it(world: World, tmp_path: Path) -> None:
    torch.save(pruned(encoder(world), 0.3), tmp_path / "mask.pt")
    told = CliRunner().invoke(
        app,
        ["import", str(tmp_path / "mask.pt"), "--from", "bert_tickets", "--model", str(world.model), "-o",
         str(tmp_path / "mask")],
        catch_exceptions=False,
    )  # fmt: skip
    assert told.exit_code == 0
    mask = Mask.load(tmp_path / "mask" / MASK)
    assert f"{mask.removed:,} of {mask.count:,} units (weight) are removed" in told.stdout
    (cell,) = expand(world.recipe(search={"method": "given", "masks": [str(tmp_path / "mask")]}))
    drawn = plan_cell(cell).mask
    assert drawn is not None
    store = Store(tmp_path / "store")
    execute([drawn], store)
    assert store.read(drawn).removed == mask.removed


def test_a_head_that_is_left_out_needs_no_task(world: World, tmp_path: Path) -> None:
    saved = pruned(encoder(world), 0.3)
    torch.save({**saved, "classifier.weight_mask": torch.ones(3, 16)}, tmp_path / "mask.pt")
    with pytest.raises(DataError, match="or leave the head out"):
        imported(world, tmp_path / "mask.pt", tmp_path)
    mask = imported(world, tmp_path / "mask.pt", tmp_path, keep_head=False)
    assert mask.count == sum(value.numel() for value in saved.values())
    other = {"bert.encoder.layer.7.output.dense.weight_mask": torch.ones(16, 24)}
    torch.save({**saved, **other}, tmp_path / "mask.pt")
    with pytest.raises(DataError, match="not in this model"):
        imported(world, tmp_path / "mask.pt", tmp_path, keep_head=False)
