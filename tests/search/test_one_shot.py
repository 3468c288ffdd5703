"""Pruning a folder layer by layer is pruning the model in memory, bit for bit, whatever happens on the way."""

import json
import shutil
import weakref
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoModelForCausalLM

from tests.search.test_calibration import SINGLE_PASS, padded
from tests.shrink.masks import half
from tests.tiny import CONVERTED, MODEL_TYPES, tiny
from tombola.errors import ModelError, RecipeError, TombolaError
from tombola.masks import Mask, Scores, Units, draw
from tombola.masks.in_matrices import MatrixSelection
from tombola.masks.patterns import parse_pattern
from tombola.models.shards import Shards
from tombola.models.skeleton import Skeleton
from tombola.search import Evidence, one_shot, pruning_journal
from tombola.search.grasp import Grasp
from tombola.search.layerwise import dense_scores, prune_in_order
from tombola.search.magnitude import Magnitude
from tombola.search.one_shot import OneShot, prune_folder
from tombola.search.ria import Ria
from tombola.search.sparsegpt import SparseGPT
from tombola.search.wanda import Wanda
from tombola.shrink import shrink

EVIDENCE = Evidence(seed=1, batches=lambda count: iter(()), examples=lambda count, size: padded())
HALF = MatrixSelection(0.5, "row")


def order(settings, selection=HALF, **about):
    return OneShot(settings, selection, padded, about)


def saved(folder: Path, model_type="llama", head="causal-lm", dtype=torch.float32, shards="5KB", **options):
    model = tiny(model_type, head, **options).to(dtype)
    model.save_pretrained(folder, max_shard_size=shards)
    return model


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("model_type", [one for one in SINGLE_PASS if one not in CONVERTED])
@pytest.mark.parametrize("settings", [Wanda(), SparseGPT(block=6)], ids=["wanda", "sparsegpt"])
def test_a_folder_is_pruned_as_the_model_in_memory(tmp_path, model_type, settings):
    model = saved(tmp_path / "model", model_type, "base")
    mask = prune_folder(tmp_path / "model", tmp_path / "pruned", order(settings))
    units = Units.of(model, "weight").without("pooler")
    expected = prune_in_order(settings, model, units, EVIDENCE, HALF)
    assert mask == expected == Mask.load(tmp_path / "pruned" / "mask.safetensors")
    assert mask.base == expected.base
    found = AutoModel.from_pretrained(tmp_path / "pruned")
    for name, value in model.state_dict().items():
        assert torch.equal(found.state_dict()[name], value), name


@pytest.mark.parametrize("model_type", sorted(CONVERTED & set(MODEL_TYPES)))
def test_layers_that_are_stored_in_another_form_are_refused(tmp_path, model_type):
    saved(tmp_path / "model", model_type, "base")
    with pytest.raises(ModelError, match="prune it with a recipe"):
        prune_folder(tmp_path / "model", tmp_path / "pruned", order(Wanda()))


def test_a_folder_that_lacks_a_tensor_is_refused(tmp_path):
    model = saved(tmp_path / "model")
    state = {name: value for name, value in model.state_dict().items() if "layers.0.mlp.up" not in name}
    model.save_pretrained(tmp_path / "less", state_dict=state)
    with pytest.raises(ModelError, match=r"no tensor 'layers\.0\.mlp\.up_proj\.weight'"):
        prune_folder(tmp_path / "less", tmp_path / "pruned", order(Magnitude()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "settings",
    [Wanda(), Wanda(sequential=False), Ria(), Magnitude(), SparseGPT()],
    ids=lambda one: one.method,
)
def test_what_is_left_keeps_its_bytes_unless_the_method_changes_it(tmp_path, settings, dtype):
    model = saved(tmp_path / "model", dtype=dtype)
    mask = prune_folder(tmp_path / "model", tmp_path / "pruned", order(settings))
    found = AutoModelForCausalLM.from_pretrained(tmp_path / "pruned", dtype="auto")
    assert found.dtype == dtype
    kept = mask.tensors(model)
    for name, value in model.model.named_parameters():
        new = found.model.get_parameter(name)
        if name not in kept:
            assert torch.equal(new, value), name
            continue
        assert not new[~kept[name]].any()
        assert torch.equal(new[kept[name]], value[kept[name]]) is (settings.method != "sparsegpt")
    assert torch.equal(found.lm_head.weight, model.lm_head.weight)


@pytest.mark.parametrize("model_type", ["llama", "gemma3_text"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dense_scores_and_magnitudes_give_the_masks_of_a_draw(tmp_path, model_type, dtype):
    model = saved(tmp_path / "model", model_type, dtype=dtype).float()
    units = Units.of(model, "weight")
    dense = Wanda(sequential=False)
    found = prune_folder(tmp_path / "model", tmp_path / "wanda", order(dense))
    assert found == draw(dense_scores(dense, model, units, EVIDENCE), 0.5, scope="row")
    pattern = MatrixSelection(0.5, pattern=parse_pattern("2:4"))
    found = prune_folder(tmp_path / "model", tmp_path / "sizes", order(Magnitude(), pattern))
    assert found == draw(Scores.magnitude(units, model), pattern="2:4")


class Killed(Exception):
    pass


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [Wanda(), SparseGPT(), Magnitude()], ids=lambda one: one.method)
def test_killed_at_any_moment_it_ends_with_the_same_bytes(tmp_path, monkeypatch, settings):
    """Whatever of shards, masks, journal and hidden states was written last, also when killed while resuming."""
    saved(tmp_path / "model", num_hidden_layers=3)
    prune_folder(tmp_path / "model", tmp_path / "whole", order(settings))
    moments = [
        (Shards, "overwrite"),
        (pruning_journal.PruningJournal, "_write"),
        (pruning_journal.PruningJournal, "note"),
        (pruning_journal.PruningJournal, "finish"),
        (pruning_journal.shutil, "rmtree"),
        (pruning_journal.shutil, "copyfile"),
    ]
    for home, name in moments:
        plain = getattr(home, name)
        for after in (False, True):
            output = tmp_path / f"{name}-{after}"
            for calls in range(1, 40):
                left = calls

                def killed(*arguments, plain=plain, after=after, **options):
                    nonlocal left
                    left -= 1
                    if left == 0 and not after:
                        raise Killed
                    found = plain(*arguments, **options)
                    if left == 0:
                        raise Killed
                    return found

                with monkeypatch.context() as patch:
                    patch.setattr(home, name, killed)
                    try:
                        prune_folder(tmp_path / "model", output, order(settings))
                    except Killed:
                        continue
                    except TombolaError:
                        assert output.is_dir()  # it was all there when it was killed
                break
            assert files(output) == files(tmp_path / "whole"), (name, after)
            shutil.rmtree(output)


def test_layers_that_are_done_are_not_pruned_again(tmp_path, monkeypatch):
    saved(tmp_path / "model", num_hidden_layers=4)
    seen = []

    def progress(done, steps):
        seen.append(done)
        if seen == [0, 1, 2]:
            raise Killed

    with pytest.raises(Killed):
        prune_folder(tmp_path / "model", tmp_path / "pruned", order(Wanda()), progress)
    seen.clear()
    prune_folder(
        tmp_path / "model", tmp_path / "pruned", order(Wanda()), lambda done, steps: seen.append(done)
    )
    assert seen == [2, 3, 4]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "pruned"]


def test_another_order_does_not_go_on_with_what_was_left(tmp_path):
    saved(tmp_path / "model")

    def kill(done, steps):
        if done == 1:
            raise Killed

    with pytest.raises(Killed):
        prune_folder(tmp_path / "model", tmp_path / "pruned", order(Wanda(), seed=1), kill)
    seen = []
    prune_folder(
        tmp_path / "model",
        tmp_path / "pruned",
        order(Wanda(), seed=2),
        lambda done, steps: seen.append(done),
    )
    assert seen == [0, 1, 2]


def test_one_layer_has_values_at_a_time(tmp_path, monkeypatch):
    saved(tmp_path / "model", num_hidden_layers=3)
    filled = []
    plain = Skeleton.fill_layer

    def fill(self, index):
        plain(self, index)
        real = [name for name, value in self.model.named_parameters() if not value.is_meta]
        filled.append({name.split(".")[1] if name.startswith("layers.") else "outside" for name in real})

    monkeypatch.setattr(Skeleton, "fill_layer", fill)
    prune_folder(tmp_path / "model", tmp_path / "pruned", order(Wanda()))
    assert filled == [{"outside", "0"}, {"0"}, {"1"}, {"2"}]


def test_the_weights_of_a_layer_are_let_go_before_the_next_are_read(tmp_path, monkeypatch):
    saved(tmp_path / "model", num_hidden_layers=3)
    layers, alive = [], []
    plain, fill = one_shot._Layer.__init__, Skeleton.fill_layer

    def begin(self, *arguments):
        plain(self, *arguments)
        layers.append(weakref.ref(self))

    def look(self, index):
        alive.append(sum(layer() is not None for layer in layers))
        fill(self, index)

    monkeypatch.setattr(one_shot._Layer, "__init__", begin)
    monkeypatch.setattr(Skeleton, "fill_layer", look)
    prune_folder(tmp_path / "model", tmp_path / "pruned", order(Wanda()))
    assert len(layers) == 3
    assert alive == [0, 0, 0, 0]


def test_the_folder_says_how_it_was_pruned_and_takes_its_companions_along(tmp_path):
    saved(tmp_path / "model")
    (tmp_path / "model" / "tokenizer_config.json").write_text("{}")
    mask = prune_folder(tmp_path / "model", tmp_path / "pruned", order(Wanda(), task="words"))
    told = json.loads((tmp_path / "pruned" / "pruned.json").read_text())
    assert told["search"] == {"method": "wanda"}
    assert (told["sparsity"], told["scope"], told["task"]) == (0.5, "row", "words")
    assert (told["removed"], told["of"]) == (mask.removed, mask.count)
    assert (tmp_path / "pruned" / "tokenizer_config.json").is_file()
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert {path.name for path in (tmp_path / "pruned").iterdir()} == names | {
        "pruned.json",
        "mask.safetensors",
    }
    assert len([name for name in names if name.endswith(".safetensors")]) > 2


def test_only_some_layers_can_be_pruned(tmp_path):
    model = saved(tmp_path / "model")
    prune_folder(tmp_path / "model", tmp_path / "pruned", order(Wanda(layers=(1,))))
    found = AutoModelForCausalLM.from_pretrained(tmp_path / "pruned")
    first, last = (layer.mlp.up_proj.weight for layer in found.model.layers)
    assert torch.equal(first, model.model.layers[0].mlp.up_proj.weight)
    assert last.eq(0).float().mean() == 0.5


def test_what_cannot_be_pruned_gets_a_sentence(tmp_path):
    model = saved(tmp_path / "model")
    with pytest.raises(RecipeError, match="grasp cannot prune a model layer by layer"):
        order(Grasp())
    with pytest.raises(TombolaError, match="already exists"):
        prune_folder(tmp_path / "model", tmp_path / "model", order(Wanda()))
    with pytest.raises(TombolaError, match="not a multiple of 5"):
        prune_folder(
            tmp_path / "model",
            tmp_path / "x",
            order(Wanda(), MatrixSelection(0.6, pattern=parse_pattern("2:5"))),
        )
    model.double().save_pretrained(tmp_path / "double")
    with pytest.raises(ModelError, match="stores weights as F64"):
        prune_folder(tmp_path / "double", tmp_path / "x", order(Magnitude()))
    assert not (tmp_path / ".x.pruning").exists()  # it is refused before it is copied
    shard = sorted((tmp_path / "model").glob("*.safetensors"))[0]
    shard.write_bytes(shard.read_bytes()[:-8])
    with pytest.raises(ModelError, match="copy or save it again"):
        prune_folder(tmp_path / "model", tmp_path / "x", order(Magnitude()))
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text((tmp_path / "model" / "config.json").read_text())
    with pytest.raises(ModelError, match="save_pretrained"):
        Shards(tmp_path / "empty")


def test_buffers_that_old_files_hold_are_not_read(tmp_path):
    """RoBERTa's files have position ids in 64-bit integers, which transformers computes instead."""
    saved(tmp_path / "model", "roberta", "masked-lm", shards="1GB")
    expected = prune_folder(tmp_path / "model", tmp_path / "pruned", order(Wanda()))
    file = tmp_path / "model" / "model.safetensors"
    old = {"roberta.embeddings.position_ids": torch.arange(64)[None]}
    save_file({**load_file(file), **old}, file, {"format": "pt"})
    assert prune_folder(tmp_path / "model", tmp_path / "old", order(Wanda())) == expected


@pytest.mark.parametrize("settings", [Wanda(), Magnitude()], ids=lambda one: one.method)
def test_a_free_layout_is_refused(tmp_path, settings):
    """Its config says other sizes than its matrices have, and a mask of those sizes would fit nothing."""
    model = tiny("llama", "causal-lm")
    shrink(model, half(model, "head+neuron", seed=1)).save_pretrained(tmp_path / "model")
    with pytest.raises(ModelError, match=r"quantization_config: tombola.*with a recipe"):
        prune_folder(tmp_path / "model", tmp_path / "pruned", order(settings))


def test_beside_a_stale_index_the_file_that_transformers_opens_is_pruned(tmp_path):
    """save_pretrained removes the shards of a larger model that lay there before, and leaves their index."""
    saved(tmp_path / "model")
    saved(tmp_path / "model", shards="1GB", seed=1)
    assert {"model.safetensors", "model.safetensors.index.json"} <= files(tmp_path / "model").keys()
    mask = prune_folder(tmp_path / "model", tmp_path / "pruned", order(Magnitude()))
    found = AutoModelForCausalLM.from_pretrained(tmp_path / "pruned")
    expected = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    mask.apply(expected)
    assert all(map(torch.equal, found.parameters(), expected.parameters()))


def test_shards_read_what_safetensors_reads(tmp_path):
    saved(tmp_path / "model", dtype=torch.bfloat16)
    shards = Shards(tmp_path / "model")
    expected = {}
    for name in shards.files:
        expected |= load_file(tmp_path / "model" / name)
    assert shards.entries.keys() == expected.keys()
    assert all(torch.equal(shards.read(name), value) for name, value in expected.items())
    assert shards.size == sum(2 * value.numel() for value in expected.values())
