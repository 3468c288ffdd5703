"""Models with the head that a task needs: what is new, what is tied, what is carried over."""

import json
import logging
from pathlib import Path

import pytest
import torch
from huggingface_hub.utils import filter_repo_objects
from safetensors.torch import load_file
from transformers import PreTrainedModel

from tests.tiny import DECODERS, MODEL_TYPES, tiny
from tests.training.toy import TOKENIZER, random_mask, same_weights
from tombola.errors import ModelError
from tombola.masks import Mask, Units
from tombola.models.finding import find_folder
from tombola.models.heads import copy_base, copy_head
from tombola.models.loading import load_model, load_tokenizer
from tombola.tasks import MaskTokens, Split, Task, encode
from tombola.training import TrainSettings, train

WIKITEXT, SQUAD, SST2, MNLI = (Task.named(name) for name in ("wikitext", "squad", "sst2", "mnli"))
MASKED = [name for name in MODEL_TYPES if name not in DECODERS]


def saved(folder: Path, model_type: str = "bert", head: str = "base") -> Path:
    tiny(model_type, head).save_pretrained(folder)
    return folder


def is_tied(model: PreTrainedModel) -> bool:
    return model.get_output_embeddings().weight is model.get_input_embeddings().weight


def passages() -> Split:
    words = [f"w{i}" for i in range(59)]
    texts = [(" ".join(words[i % 7 :: 7]),) for i in range(30)]
    return Split(WIKITEXT, "train", texts, [None] * 30, [str(i) for i in range(30)], "")


def test_each_kind_of_task_gets_its_head(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    names = {task.name: type(load_model(folder, task, seed=0)).__name__ for task in (WIKITEXT, SQUAD, SST2)}
    assert names == {
        "wikitext": "BertForMaskedLM",
        "squad": "BertForQuestionAnswering",
        "sst2": "BertForSequenceClassification",
    }


def test_an_answers_head_has_two_outputs_whatever_the_folder_says(tmp_path: Path) -> None:
    tiny("bert", num_labels=3).save_pretrained(tmp_path)
    assert load_model(tmp_path, SQUAD, seed=0).qa_outputs.out_features == 2


def test_a_head_depends_on_the_seed_alone(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    for task in (WIKITEXT, SQUAD, SST2):
        one = load_model(folder, task, seed=1)
        torch.rand(3)
        assert same_weights(one, load_model(folder, task, seed=1))
        assert not same_weights(one, load_model(folder, task, seed=2))


def test_a_new_pooler_depends_on_the_seed_alone_and_keeps_a_states_spread(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    own = load_model(folder, SST2, seed=1)
    new = load_model(folder, SST2, seed=1, new_pooler=True)
    wider = load_model(folder, MNLI, seed=1, new_pooler=True)
    other = load_model(folder, SST2, seed=2, new_pooler=True)
    changed = {name for name, tensor in new.named_parameters() if not tensor.equal(own.get_parameter(name))}
    assert changed == {"bert.pooler.dense.weight", "bert.pooler.dense.bias"}
    weight = new.bert.pooler.dense.weight
    assert weight.equal(wider.bert.pooler.dense.weight)
    assert not weight.equal(other.bert.pooler.dense.weight)
    torch.testing.assert_close(weight.std() * len(weight) ** 0.5, torch.tensor(1.0), rtol=0.05, atol=0)
    assert not new.bert.pooler.dense.bias.any()


def test_a_model_without_a_pooler_gets_none(tmp_path: Path) -> None:
    folder = saved(tmp_path / "bert")
    masked = load_model(folder, WIKITEXT, seed=1, new_pooler=True)
    assert same_weights(masked, load_model(folder, WIKITEXT, seed=1))
    with pytest.raises(ModelError, match="roberta models have no pooler"):
        load_model(saved(tmp_path / "roberta", "roberta"), SST2, seed=1, new_pooler=True)


def test_a_decoder_has_no_masked_language_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no masked-lm model of the type 'gpt2'"):
        load_model(saved(tmp_path, "gpt2"), WIKITEXT, seed=0)


def test_a_new_language_model_head_is_tied_and_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = saved(tmp_path)
    for seed in (0, 1):
        model = load_model(folder, WIKITEXT, seed=seed)
        assert is_tied(model)
        embeddings = load_file(folder / "model.safetensors")["embeddings.word_embeddings.weight"]
        assert torch.equal(model.cls.predictions.decoder.weight, embeddings)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "has no head of a masked language model" in caplog.text


def test_a_language_model_keeps_its_own_head(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    original = tiny("bert", "masked-lm")
    original.save_pretrained(tmp_path)
    assert same_weights(original, load_model(tmp_path, WIKITEXT, seed=0))
    assert not caplog.records


@pytest.mark.parametrize("model_type", ["bert", "roberta", "distilbert", "llama"])
def test_a_learned_heads_outputs_are_put_in_the_tasks_order(model_type: str, tmp_path: Path) -> None:
    """Hub models for NLI name their outputs in other orders than GLUE: reading them by place is a silent bug."""
    theirs = ["contradiction", "neutral", "entailment"]
    original = tiny(model_type, num_labels=3).eval()
    original.config.id2label = dict(enumerate(theirs))
    original.config.label2id = {name: place for place, name in enumerate(theirs)}
    original.save_pretrained(tmp_path)
    model = load_model(tmp_path, MNLI, seed=0).eval()
    tokens = torch.arange(5, 11)[None]
    assert list(model.config.id2label.values()) == MNLI.labels
    torch.testing.assert_close(model(tokens).logits, original(tokens).logits[:, [2, 1, 0]])


def test_a_head_that_names_no_labels_is_kept_as_it_is(tmp_path: Path) -> None:
    original = tiny("bert", num_labels=3)
    original.save_pretrained(tmp_path)
    assert same_weights(original, load_model(tmp_path, MNLI, seed=0))


def test_a_head_with_other_label_names_is_kept_with_a_warning_but_no_teacher(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    original = tiny("bert", num_labels=3)
    original.config.id2label = {0: "red", 1: "green", 2: "blue"}
    original.save_pretrained(tmp_path)
    model = load_model(tmp_path, MNLI, seed=0)
    assert same_weights(original, model)
    assert "['red', 'green', 'blue'], are assumed to be the labels of mnli" in caplog.text
    with pytest.raises(ModelError, match="the model's labels are"):
        load_model(tmp_path, MNLI, seed=0, finetuned=True)


def test_a_head_of_another_size_is_replaced_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    original = tiny("bert", num_labels=5)
    original.save_pretrained(tmp_path)
    model = load_model(tmp_path, MNLI, seed=0)
    assert model.classifier.out_features == 3
    assert same_weights(original.base_model, model.base_model)
    assert "has a head of the wrong size for mnli" in caplog.text


def test_a_config_that_does_not_fit_the_weights_is_refused(tmp_path: Path) -> None:
    tiny("bert").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "vocab_size": config["vocab_size"] + 7}))
    with pytest.raises(ModelError, match=r"config\.json does not fit the weights"):
        load_model(tmp_path, MNLI, seed=0)


def trained(folder: Path, work: Path, mask: Mask | None = None) -> PreTrainedModel:
    model = load_model(folder, WIKITEXT, seed=0)
    settings = TrainSettings(epochs=2, batch_size=8, learning_rate=1e-2)
    data = encode(passages(), TOKENIZER, 12)
    train(
        model,
        data,
        settings,
        collate=MaskTokens(TOKENIZER, 1),
        seed=1,
        precision="fp32",
        folder=work,
        mask=mask,
    )
    return model


def test_head_and_embeddings_stay_tied_through_training_saving_and_loading(tmp_path: Path) -> None:
    folder = saved(tmp_path / "base")
    before = load_model(folder, WIKITEXT, seed=0).get_input_embeddings().weight.clone()
    model = trained(folder, tmp_path / "work")
    assert is_tied(model)
    assert not torch.equal(model.get_input_embeddings().weight, before)
    model.save_pretrained(tmp_path / "trained")
    again = load_model(tmp_path / "trained", WIKITEXT, seed=5)
    assert is_tied(again)
    assert same_weights(model, again)


@pytest.mark.parametrize("model_type", MASKED)
def test_carrying_a_head_over_does_not_undo_the_rewinding_of_embeddings(model_type: str) -> None:
    source, into, rewound = (tiny(model_type, "masked-lm", seed=seed) for seed in (0, 1, 1))
    copy_head(source, into)
    for name, tensor in into.base_model.state_dict().items():
        assert torch.equal(tensor, rewound.base_model.state_dict()[name]), name
    base = {id(parameter) for parameter in into.base_model.parameters()}
    head = {name: value for name, value in into.named_parameters() if id(value) not in base}
    assert head
    for name, value in head.items():
        assert torch.equal(value, source.get_parameter(name)), name
    assert is_tied(into) == into.config.tie_word_embeddings


@pytest.mark.parametrize("head", ["masked-lm", "question-answering"])
def test_base_and_head_together_are_the_whole_model(head: str) -> None:
    source, into = tiny("bert", head, seed=0), tiny("bert", head, seed=1)
    copy_base(source, into)
    copy_head(source, into)
    assert same_weights(source, into)


def test_a_language_models_mask_leaves_a_classifiers_pooler_dense(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    language_model, classifier = load_model(folder, WIKITEXT, seed=0), load_model(folder, SST2, seed=0)
    assert len(Units.of(language_model, "weight").groups) == 2 * 6
    assert len(Units.of(classifier, "weight").groups) == 2 * 6 + 1
    mask = random_mask(language_model)
    mask.save(tmp_path / "mask.safetensors")
    pooler = classifier.base_model.pooler.dense.weight.clone()
    Mask.load(tmp_path / "mask.safetensors").apply(classifier)
    assert torch.equal(classifier.base_model.pooler.dense.weight, pooler)
    zeros = sum(
        int((weight == 0).sum())
        for weight in Units.of(language_model, "weight").matrices(classifier).values()
    )
    assert zeros == mask.removed > 0


def test_a_folder_without_a_tokenizer_is_refused(world, tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((world.model / name).read_bytes())
    with pytest.raises(ModelError, match="has no tokenizer"):
        load_tokenizer(tmp_path)


def test_chat_template_and_merges_come_along_from_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny("llama", "causal-lm").save_pretrained(tmp_path)
    repository = ["config.json", "chat_template.jinja", "bpe.codes", "model.safetensors", "model.bin"]
    taken: list[str] = []

    def download(name: str, allow_patterns: list[str]) -> str:
        taken.extend(filter_repo_objects(repository, allow_patterns=allow_patterns))
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert find_folder("owner/name") == tmp_path
    assert taken == repository[:-1]
