import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

from tests.shrink.masks import half
from tests.tiny import tiny, token_ids
from tests.words import word_tokenizer
from tests.world import World
from tombola.defenses import fit_defenses
from tombola.defenses.spelling import Spelling
from tombola.errors import ModelError, TombolaError
from tombola.masks import Mask
from tombola.models.loading import load_tokenizer
from tombola.shrink import RandomTokens, count_flops, modules, unpack
from tombola.shrink.texts import TextBatch
from tombola.tickets.saved import FORMAT
from tombola.tickets.shrinking import Shrinkage, pack_ticket, shrink_ticket
from tombola.tickets.texts import texts_of

FAST = {"batch_sizes": (1,), "length": 16, "rounds": 1}


@pytest.fixture
def ticket(tmp_path: Path) -> Path:
    """A folder with a model, a tokenizer and a mask of heads and FFNs."""
    folder = tmp_path / "ticket"
    model = tiny("mpnet")
    model.save_pretrained(folder)
    word_tokenizer(["a fine film"]).save_pretrained(folder)
    half(model, "head+ffn", empty=0).save(folder / "mask.safetensors")
    return folder


def test_shrinking_a_ticket(ticket: Path, tmp_path: Path) -> None:
    output = tmp_path / "smaller" / "model"
    report = shrink_ticket(ticket, output, **FAST)
    mask = Mask.load(ticket / "mask.safetensors")
    assert (report.units, report.removed, report.of) == ("head+ffn", mask.removed, 10)
    assert report.max_difference < 1e-5
    assert report.after.bytes == (output / "model.safetensors").stat().st_size < report.before.bytes
    assert report.before.bytes == (ticket / "model.safetensors").stat().st_size
    assert {row.what.split()[0] for row in report.rows} == {"parameters", "FLOPs", "size", "time"}
    assert report.rows[-1].speedup == report.speedup[1]
    assert report.after.texts == "random tokens, 16 per text"
    assert report.recipe is None
    written = json.loads((output / "shrinkage.json").read_text())
    assert Shrinkage.model_validate({**written, "folder": output}) == report
    assert str(tmp_path) not in (output / "shrinkage.json").read_text()
    json.dumps(report.model_dump(mode="json"))

    masked = tiny("mpnet")
    mask.apply(masked)
    shrunk = AutoModelForSequenceClassification.from_pretrained(output)
    with torch.no_grad():
        expected, actual = masked(token_ids()).logits, shrunk(token_ids()).logits
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)
    assert AutoTokenizer.from_pretrained(output)("a fine film").input_ids[0] == 2
    names = {file.name for file in output.iterdir()}
    assert not names & {"ticket.json", "mask.safetensors"}
    assert not list(output.parent.glob("*.partial"))


def test_named_chat_templates_come_along(ticket: Path, tmp_path: Path) -> None:
    templates = {"default": "{{ messages }}", "tools": "{{ tools }}"}
    tokenizer = word_tokenizer(["a fine film"])
    tokenizer.chat_template = templates
    tokenizer.save_pretrained(ticket)
    shrink_ticket(ticket, tmp_path / "smaller", **FAST)
    assert AutoTokenizer.from_pretrained(tmp_path / "smaller").chat_template == templates


@pytest.mark.parametrize("cut", ["small", {}, {"dense": "bert"}, {"dense": {"model_type": "bert"}}])
def test_a_ticket_that_does_not_say_what_it_was_cut_from_is_refused(
    ticket: Path, tmp_path: Path, cut: object
) -> None:
    (ticket / "ticket.json").write_text(json.dumps({"format": FORMAT, "recipe": {}, "cut": cut}))
    with pytest.raises(TombolaError, match="does not record the size of the dense model"):
        shrink_ticket(ticket, tmp_path / "smaller", **FAST)


def test_a_ticket_that_knows_its_task_is_timed_on_its_texts(world: World, tmp_path: Path) -> None:
    ticket = known_ticket(world, tmp_path / "ticket", evaluate={"on": ["other"]}, data={"evaluation": 20})
    report = shrink_ticket(ticket, tmp_path / "smaller", batch_sizes=(2,), rounds=1)
    assert report.before.texts == report.after.texts
    assert report.before.texts.startswith("20 texts of tiny/other, ")
    assert report.before.length == 6  # three to six words, and two special tokens
    assert report.before.flops == count_flops(
        AutoModelForSequenceClassification.from_pretrained(ticket), 1, 6
    )
    assert not (tmp_path / "smaller" / "ticket.json").exists()
    config = AutoConfig.from_pretrained(tmp_path / "smaller")
    assert texts_of(tmp_path / "smaller", config).about == report.before.texts


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"task": "sst2", "data": {"folder": "/none"}}, "no texts of the task: The data folder /none does"),
        ({"task": "nonsense"}, "no texts of the task: unknown task 'nonsense'"),
        ({"data": {"train": "all"}}, "no texts of the task: data.train"),
    ],
)
def test_without_the_data_random_tokens_are_taken_and_it_is_said_why(
    world: World, tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    ticket = known_ticket(world, tmp_path / "ticket", **changes)
    texts = texts_of(ticket, AutoConfig.from_pretrained(ticket))
    assert isinstance(texts, RandomTokens)
    assert texts.about.startswith(f"random tokens, 64 per text ({reason}")


def test_a_model_that_is_no_ticket_does_not_know_its_task(world: World) -> None:
    texts = texts_of(world.model, AutoConfig.from_pretrained(world.model))
    assert texts.about == "random tokens, 64 per text (the model's task is unknown)"


def known_ticket(world: World, folder: Path, **changes: Any) -> Path:
    """A ticket of heads with its recipe."""
    tokenizer = load_tokenizer(world.model)
    model = tiny("bert", vocab_size=len(tokenizer))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    half(model, "head").save(folder / "mask.safetensors")
    recipe = world.recipe(**changes)
    (folder / "ticket.json").write_text(json.dumps({"format": 1, "recipe": recipe}))
    return folder


def test_the_defense_counts_before_and_after(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are the ticket behind its defense, so that a slow one levels their times."""
    ticket = known_ticket(world, tmp_path / "ticket")
    fit_defenses((Spelling(dictionary=None),), ["a very fine film"]).save(ticket)

    def correct(_: TextBatch) -> None:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass

    monkeypatch.setattr(TextBatch, "correct", correct)
    shrunk = shrink_ticket(ticket, tmp_path / "small", batch_sizes=(1,), rounds=3)
    assert shrunk.before.latency[1] > 0.019
    assert shrunk.after.latency[1] > 0.019


def test_an_existing_folder_is_not_overwritten(ticket: Path, tmp_path: Path) -> None:
    with pytest.raises(TombolaError, match="already exists"):
        shrink_ticket(ticket, ticket, **FAST)
    (tmp_path / "empty").mkdir()
    shrink_ticket(ticket, tmp_path / "empty", **FAST)


def test_an_unstructured_ticket_is_packed_instead(ticket: Path, tmp_path: Path) -> None:
    model = tiny("mpnet")
    mask = half(model, "weight")
    mask.save(ticket / "mask.safetensors")
    with pytest.raises(TombolaError, match="shrink --pack"):
        shrink_ticket(ticket, tmp_path / "smaller", **FAST)
    packing = pack_ticket(ticket, tmp_path / "packed.safetensors")
    assert packing.dense == (ticket / "model.safetensors").stat().st_size
    assert packing.packed == (tmp_path / "packed.safetensors").stat().st_size
    assert packing.dense_matrices == 4 * mask.units.prunable
    assert packing.dense - packing.dense_matrices == packing.packed - packing.packed_matrices
    mask.apply(model)
    unpacked = unpack(packing.path).state_dict()
    assert all(torch.equal(tensor, unpacked[name]) for name, tensor in model.state_dict().items())


def test_a_shrunk_model_that_differs_is_not_written(
    ticket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny("mpnet")
    half(model, "head", seed=1).save(ticket / "mask.safetensors")
    monkeypatch.setattr(
        modules.KeptHeadsOf, "__call__", lambda self, module, arguments: (*arguments[:2], None)
    )
    with pytest.raises(ModelError, match="differs from the masked one"):
        shrink_ticket(ticket, tmp_path / "smaller", **FAST)
    assert [path.name for path in tmp_path.iterdir()] == ["ticket"]
