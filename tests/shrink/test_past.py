import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from tests.tiny import tiny, token_ids
from tombola.errors import ModelError
from tombola.masks import Mask, Units
from tombola.shrink import convert_pruned_heads

GONE = {0: [1, 2], 1: [0]}


def old_folder(model: PreTrainedModel, folder: Path) -> None:
    """The folder that transformers 4 wrote after `prune_heads` of a BERT with four heads of width 4."""
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    for layer, heads in GONE.items():
        kept = torch.tensor([row for row in range(16) if row // 4 not in heads])
        below = f"bert.encoder.layer.{layer}.attention"
        for name in ("query", "key", "value"):
            for part in ("weight", "bias"):
                tensors[f"{below}.self.{name}.{part}"] = tensors[f"{below}.self.{name}.{part}"][kept]
        output = f"{below}.output.dense.weight"
        tensors[output] = tensors[output][:, kept].contiguous()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    change_config(folder, pruned_heads={str(layer): heads for layer, heads in GONE.items()})


def change_config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    old_folder(tiny("bert"), tmp_path / "old")
    (tmp_path / "old" / "vocab.txt").write_text("[PAD]\n")
    return tmp_path / "old"


def test_a_converted_folder_computes_what_the_masked_original_does(old: Path, tmp_path: Path) -> None:
    shape = convert_pruned_heads(old, tmp_path / "new")
    assert [layer.heads for layer in shape.layers] == [(0, 3), (1, 2, 3)]
    original = tiny("bert")
    units = Units.of(original, "head")
    kept = {
        f"layers.{layer}.heads": torch.tensor([head not in heads for head in range(4)])
        for layer, heads in GONE.items()
    }
    Mask.from_bools(units, kept).apply(original)
    converted = AutoModelForSequenceClassification.from_pretrained(tmp_path / "new")
    with torch.no_grad():
        expected, actual = original(token_ids()).logits, converted(token_ids()).logits
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)
    assert "pruned_heads" not in json.loads((tmp_path / "new" / "config.json").read_text())
    assert (tmp_path / "new" / "vocab.txt").is_file()


def test_pickled_weights_are_refused(old: Path, tmp_path: Path) -> None:
    (old / "model.safetensors").rename(old / "pytorch_model.bin")
    with pytest.raises(ModelError, match="Pickled weights are not loaded"):
        convert_pruned_heads(old, tmp_path / "new")


def test_a_folder_without_pruned_heads_is_refused(tmp_path: Path) -> None:
    tiny("bert").save_pretrained(tmp_path / "whole")
    with pytest.raises(ModelError, match="nothing to convert"):
        convert_pruned_heads(tmp_path / "whole", tmp_path / "new")
    with pytest.raises(ModelError, match=r"no config\.json"):
        convert_pruned_heads(tmp_path, tmp_path / "new")


@pytest.mark.parametrize("pruned", [{"0": [4]}, {"7": [0]}])
def test_heads_that_the_model_does_not_have_are_refused(
    pruned: dict[str, list[int]], old: Path, tmp_path: Path
) -> None:
    change_config(old, pruned_heads=pruned)
    with pytest.raises(ModelError, match="has no such heads"):
        convert_pruned_heads(old, tmp_path / "new")


def test_tensors_that_disagree_with_the_config_are_refused_and_nothing_is_written(
    old: Path, tmp_path: Path
) -> None:
    change_config(old, pruned_heads={"0": [1], "1": [0]})
    with pytest.raises(ModelError, match="has shape"):
        convert_pruned_heads(old, tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old"]
