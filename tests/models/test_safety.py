"""Nothing that other people saved runs code, and what is damaged is named."""

import json
import pickle
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from tests.tiny import tiny
from tests.world import World
from tombola.errors import ModelError
from tombola.models.finding import find_folder, find_model
from tombola.models.loading import load_model, load_tokenizer, open_model
from tombola.models.safety import open_config, read_config
from tombola.shrink import folders
from tombola.tasks import Task


@pytest.fixture
def folder(world: World, tmp_path):
    shutil.copytree(world.model, tmp_path / "model")
    return tmp_path / "model"


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


class Bomb:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_an_index_that_names_a_pickle_is_refused_before_it_is_opened(folder, tmp_path):
    (folder / "model.safetensors").rename(folder / "away.safetensors")
    (folder / "weights.bin").write_bytes(pickle.dumps(Bomb(tmp_path / "exploded")))
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": "weights.bin"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError, match=r"names 'weights\.bin', which is not a safetensors file"):
        open_model(folder)
    assert not (tmp_path / "exploded").exists()


def test_pickled_weights_alone_are_named_and_not_loaded(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(tmp_path / "exploded")))
    with pytest.raises(ModelError, match=r"only pickled weights \(pytorch_model\.bin\).*save it again"):
        find_folder(str(folder))
    assert not (tmp_path / "exploded").exists()


def test_an_index_does_not_lead_out_of_the_folder(folder):
    index = {"weight_map": {"x": "../other.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError, match=r"'\.\./other\.safetensors'"):
        find_folder(str(folder))


@pytest.mark.parametrize("part", ["classifier.bias", "bert.encoder.layer.1.output.dense.weight"])
def test_weights_that_are_missing_are_not_made_up(tmp_path, part):
    tiny("bert").save_pretrained(tmp_path)
    index = {"metadata": {}, "weight_map": dict.fromkeys(without(tmp_path, part), "some.safetensors")}
    (tmp_path / "model.safetensors").rename(tmp_path / "some.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(
        ModelError, match=rf"lacks 1 of the model's weights \({part}\).*copy or save it again"
    ):
        open_model(tmp_path)


def test_a_pretrained_encoder_must_be_whole_but_needs_no_pooler_and_no_head(world, tmp_path):
    tiny("bert").save_pretrained(tmp_path)
    without(
        tmp_path, "classifier.weight", "classifier.bias", "bert.pooler.dense.weight", "bert.pooler.dense.bias"
    )
    load_model(tmp_path, Task.named(str(world.task)), seed=1)
    without(tmp_path, "bert.embeddings.word_embeddings.weight")
    with pytest.raises(ModelError, match="lacks 1 of the model's weights"):
        load_model(tmp_path, Task.named(str(world.task)), seed=1)


def without(folder, *names):
    """Remove weights from a model's file, and return the names of the others."""
    weights = load_file(folder / "model.safetensors")
    rest = {name: tensor for name, tensor in weights.items() if name not in names}
    assert len(rest) == len(weights) - len(names)
    save_file(rest, folder / "model.safetensors", {"format": "pt"})
    return list(rest)


def test_a_model_with_code_of_its_own_gets_a_sentence_and_no_prompt(folder):
    edit(folder / "config.json", model_type="homemade", auto_map={"AutoModel": "modeling.Homemade"})
    with pytest.raises(ModelError, match="Tombola does not run such code"):
        find_folder(str(folder))


@pytest.mark.parametrize("content", ["{", "[]", '"bert"', "[" * 100_000])
def test_a_damaged_config_is_named(folder, content):
    (folder / "config.json").write_text(content)
    with pytest.raises(ModelError, match=r"config\.json"):
        find_model(str(folder))


def test_damaged_weights_are_named_with_their_file(folder):
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match=r"model\.safetensors is damaged"):
        open_model(folder)


def test_a_damaged_tokenizer_is_a_sentence(folder):
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match="tokenizer cannot be opened"):
        load_tokenizer(folder)


def test_the_tokenizer_is_part_of_the_fingerprint(folder, world):
    before = find_model(str(folder)).fingerprint
    assert before == find_model(str(world.model)).fingerprint
    content = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    first, second = list(vocabulary)[-2:]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (folder / "tokenizer.json").write_text(json.dumps(content))
    assert find_model(str(folder)).fingerprint != before


def test_a_folder_without_a_config_is_no_model(tmp_path: Path) -> None:
    for read in (read_config, open_config, folders.load_model):
        with pytest.raises(ModelError, match=r"has no config\.json, so it is not a model folder$"):
            read(tmp_path)
