"""Models that are made from scratch: always the same, and usable at once."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tombola.families import family_of
from tombola.models.finding import find_model
from tombola.models.loading import load_model, load_tokenizer
from tombola.models.scratch import SCRATCH, made_from_scratch
from tombola.recipe.catalogue import catalogue
from tombola.tasks import Task


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOMBOLA_CACHE", str(cache))
        return made_from_scratch("tiny-decoder")


def test_it_is_made_once_and_always_the_same(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOMBOLA_CACHE", str(folder.parents[1]))
    written = (folder / "model.safetensors").stat().st_mtime_ns
    first = find_model("tiny-decoder")
    assert (folder / "model.safetensors").stat().st_mtime_ns == written
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    monkeypatch.setenv("TOMBOLA_CACHE", str(tmp_path))
    torch.manual_seed(5)
    again = find_model("tiny-decoder")
    assert again.folder != first.folder
    assert again.fingerprint == first.fingerprint
    weights = [load_file(one.folder / "model.safetensors") for one in (first, again)]
    assert all(torch.equal(tensor, weights[1][name]) for name, tensor in weights[0].items())


def test_it_is_a_decoder_whose_tokenizer_loses_nothing(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    text = "It's a 1970s café, isn't it?\n 日本"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert len(tokenizer("a moving film")["input_ids"]) < 8
    assert tokenizer.eos_token_id == 0
    model = load_model(folder, Task.named("reviews_text"), seed=0)
    assert model.config.vocab_size == len(tokenizer) == SCRATCH["tiny-decoder"]["vocab_size"]
    assert len(family_of(model).layers_of(model)) == 4
    assert 0.8e6 < model.num_parameters() < 1.2e6


def test_it_is_listed() -> None:
    assert "tiny-decoder" in dict(catalogue("models")["models"])
