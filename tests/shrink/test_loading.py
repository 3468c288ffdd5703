import json
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    Trainer,
    TrainingArguments,
    pipeline,
)
from transformers.quantizers import auto

from tests.shrink.masks import half
from tests.tiny import HEADS, MODEL_TYPES, tiny, token_ids
from tests.words import word_tokenizer
from tombola.errors import ModelError
from tombola.shrink import shrink
from tombola.shrink.shrinking import shape_of


def shrunk(
    model_type: str, head: str = "sequence-classification", empty: int | None = None
) -> PreTrainedModel:
    model = tiny(model_type, head)
    return shrink(model, half(model, "head+neuron", empty=empty))


def assert_bit_equal(one: PreTrainedModel, two: PreTrainedModel) -> None:
    first, second = one.state_dict(), two.state_dict()
    assert first.keys() == second.keys()
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())
    with torch.no_grad():
        assert torch.equal(one(token_ids())[0], two(token_ids())[0])


@pytest.mark.parametrize("empty", [None, 1])
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_saved_and_loaded_twice_bit_equal(model_type: str, empty: int | None, tmp_path: Path) -> None:
    model = shrunk(model_type, empty=empty)
    model.save_pretrained(tmp_path / "once")
    once = AutoModelForSequenceClassification.from_pretrained(tmp_path / "once")
    assert_bit_equal(model, once)
    once.save_pretrained(tmp_path / "twice")
    assert_bit_equal(model, AutoModelForSequenceClassification.from_pretrained(tmp_path / "twice"))
    configs = [json.loads((tmp_path / name / "config.json").read_text()) for name in ("once", "twice")]
    assert configs[0] == configs[1]


@pytest.mark.parametrize(
    ("model_type", "head"),
    [
        ("bert", "base"),
        ("roberta", "masked-lm"),
        ("mpnet", "question-answering"),
        ("electra", "token-classification"),
        ("gpt2", "causal-lm"),
        ("qwen2", "causal-lm"),
    ],
)
def test_every_auto_class(model_type: str, head: str, tmp_path: Path) -> None:
    model = shrunk(model_type, head)
    model.save_pretrained(tmp_path)
    assert_bit_equal(model, HEADS[head].from_pretrained(tmp_path))


def test_half_precision_is_kept(tmp_path: Path) -> None:
    model = shrunk("bert").to(torch.bfloat16)
    model.save_pretrained(tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert loaded.dtype == torch.bfloat16
    assert_bit_equal(model, loaded)
    assert loaded.float().dtype == torch.float32


@pytest.mark.thorough
def test_import_tombola_is_all_that_loading_needs(tmp_path: Path) -> None:
    """The registration waits for transformers without importing it, or torch."""
    shrunk("bert").save_pretrained(tmp_path)
    program = f"""
import sys
import tombola
assert not {{"torch", "transformers"}} & sys.modules.keys()
from transformers import AutoModel
print(AutoModel.from_pretrained({str(tmp_path)!r}).num_parameters())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(ran.stdout) == AutoModel.from_pretrained(tmp_path).num_parameters()


@pytest.mark.parametrize("granularity", ["head", "ffn", "layer"])
def test_without_tombola_loading_fails_loudly(
    granularity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny("bert")
    shrink(model, half(model, granularity, empty=0)).save_pretrained(tmp_path)
    monkeypatch.delitem(auto.AUTO_QUANTIZATION_CONFIG_MAPPING, "tombola")
    monkeypatch.delitem(auto.AUTO_QUANTIZER_MAPPING, "tombola")
    with pytest.raises(RuntimeError):
        AutoModelForSequenceClassification.from_pretrained(tmp_path)


def test_pipeline(tmp_path: Path) -> None:
    tokenizer = word_tokenizer(["a fine film", "a dull plot"])
    model = shrunk("bert")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    answers = pipeline("text-classification", model=str(tmp_path))(["a fine film", "dull"], top_k=None)
    with torch.no_grad():
        logits = model(**tokenizer("a fine film", return_tensors="pt")).logits
    expected = dict(zip(("LABEL_0", "LABEL_1"), logits.softmax(-1)[0].tolist(), strict=True))
    assert {each["label"]: each["score"] for each in answers[0]} == pytest.approx(expected, abs=1e-6)


def test_trainer_fine_tunes_it(tmp_path: Path) -> None:
    shrunk("mpnet", empty=0).save_pretrained(tmp_path / "shrunk")
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "shrunk")
    before = deepcopy(model.state_dict())
    settings = TrainingArguments(tmp_path, max_steps=2, learning_rate=0.01, report_to=[], use_cpu=True)
    data = [{"input_ids": ids, "labels": label} for ids, label in zip(token_ids(), (0, 1, 0), strict=True)]
    Trainer(model, settings, train_dataset=data).train()
    after = model.state_dict()
    layers = [name for name in before if ".layer." in name and before[name].numel()]
    assert sum(not torch.equal(before[name], after[name]) for name in layers) > len(layers) * 0.8
    assert {name: tensor.shape for name, tensor in before.items()} == {n: t.shape for n, t in after.items()}
    model.save_pretrained(tmp_path / "tuned")
    assert_bit_equal(model.eval(), AutoModelForSequenceClassification.from_pretrained(tmp_path / "tuned"))


def test_another_head_is_refused_and_the_advice_works(tmp_path: Path) -> None:
    shrunk("bert").save_pretrained(tmp_path / "two")
    with pytest.raises(ModelError, match=r"classifier\.\w+ has shape \(2.*AutoModel"):
        AutoModelForSequenceClassification.from_pretrained(tmp_path / "two", num_labels=3)
    AutoModel.from_pretrained(tmp_path / "two").save_pretrained(tmp_path / "bare")
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "bare", num_labels=3)
    assert model(token_ids()).logits.shape == (3, 3)


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    shrunk("bert").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["quantization_config"]["layers"][0]["neurons"] += 1
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="intermediate"):
        AutoModel.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "layers",
    [
        [{"heads": [0], "neurons": 8}],
        [{"heads": [4], "neurons": 8}, {"heads": [0], "neurons": 8}],
        [{"heads": [0], "neurons": 25}, {"heads": [0], "neurons": 8}],
    ],
    ids=["layers", "heads", "neurons"],
)
def test_a_shape_beyond_the_config_is_refused(layers: list[dict[str, object]], tmp_path: Path) -> None:
    shrunk("bert").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["quantization_config"]["layers"] = layers
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="copy or create the folder again"):
        AutoModel.from_pretrained(tmp_path)


def test_a_loaded_model_shrinks_again(tmp_path: Path) -> None:
    shrunk("mpnet").save_pretrained(tmp_path / "once")
    once = AutoModelForSequenceClassification.from_pretrained(tmp_path / "once")
    twice = shrink(once, half(once, "neuron", seed=2), multiple=1)
    twice.save_pretrained(tmp_path / "twice")
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path / "twice")
    assert shape_of(loaded) == shape_of(twice) != shape_of(once)
    assert_bit_equal(twice, loaded)
