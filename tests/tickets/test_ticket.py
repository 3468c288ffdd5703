"""A ticket's folder: an ordinary model for everybody, and all that is known about it for us."""

import json

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

import tombola
from tombola.errors import DamagedArtefact, TombolaError
from tombola.masks import Mask

pytestmark = pytest.mark.portable


@pytest.fixture(scope="module")
def drawn(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ticket")
    recipe = world.recipe(about="A <b>|pipe</b>", search={"method": "magnitude"}, draw={"sparsity": 0.5})
    return tombola.run(recipe, output=folder / "out", store=folder / "store")


@pytest.fixture(scope="module")
def ticket(drawn):
    return tombola.Ticket.from_pretrained(drawn.folder / drawn.cells[0].ticket)


def test_the_folder_opens_with_plain_transformers(ticket):
    plain = AutoModelForSequenceClassification.from_pretrained(ticket.folder)
    ids = AutoTokenizer.from_pretrained(ticket.folder)("the film was lovely", return_tensors="pt")
    with torch.no_grad():
        assert torch.equal(plain(**ids).logits, ticket.model()(**ids).logits)
    classify = pipeline("text-classification", model=str(ticket.folder))
    assert classify("the film was lovely")[0]["label"] in ("negative", "positive")


def test_the_mask_is_the_weights_zeros(ticket):
    weights = dict(ticket.model().base_model.named_parameters())
    for name, kept in ticket.mask.items():
        assert torch.equal(weights[f"{name}.weight"] != 0, kept)


def test_it_carries_recipe_scores_versions_and_provenance(ticket, drawn):
    assert ticket.metrics == drawn.cells[0].model_dump(mode="json")["scores"]
    assert ticket.recipe["search"] == {"method": "magnitude"}
    assert ticket.info["versions"]["tombola"] == tombola.__version__
    assert ticket.info["base"]["fingerprint"] == ticket.mask.base.fingerprint
    kinds = sorted(stage["kind"] for stage in ticket.info["provenance"].values())
    assert kinds == ["draw", "train"]


def test_both_sparsities_are_reported_and_not_mixed_up(ticket):
    mask = ticket.info["mask"]
    model = ticket.model()
    zeros = sum(int((~kept).sum()) for _, kept in ticket.mask.items())
    assert mask["weight_sparsity"] == 0.5
    assert mask["total_sparsity"] == pytest.approx(zeros / model.num_parameters())
    assert mask["total_sparsity"] < mask["weight_sparsity"]


def test_a_session_shows_what_it_is_and_its_scores(ticket):
    first, *scores = repr(ticket).splitlines()
    assert first.startswith(f"Ticket({str(ticket.folder)!r}): ")
    assert first.endswith(", 50.0% of the prunable weights removed")
    (metric, score), *_ = ticket.metrics["validation"].items()
    assert f"  validation: {metric} {score['value']:.4f}" in scores[0]
    hostile = {**ticket.info, "base": {"name": "a\nb\x1b[31m"}}
    assert repr(tombola.Ticket(ticket.folder, hostile)).splitlines()[0].count(r"a\nb\x1b[31m") == 1
    assert repr(tombola.Ticket(ticket.folder, {})).endswith(": an incomplete description")


def test_the_card_has_a_table_and_the_recipe(ticket):
    card = (ticket.folder / "README.md").read_text()
    score = ticket.metrics["validation"]["accuracy"]
    assert f"| validation | accuracy | {score['value']:.4f} | {score['stderr']:.4f} | {score['n']} |" in card
    assert "method: magnitude" in card
    assert card.startswith("---\nlibrary_name: transformers")


def test_the_recipe_of_a_ticket_draws_it_again(ticket, tmp_path):
    again = tombola.run(ticket.recipe, output=tmp_path / "out", store=tmp_path / "store")
    other = tombola.Ticket.from_pretrained(again.folder / again.cells[0].ticket)
    assert other.mask == ticket.mask
    assert all(
        torch.equal(a, b)
        for a, b in zip(
            other.model().state_dict().values(), ticket.model().state_dict().values(), strict=True
        )
    )


def test_saving_and_opening_again_changes_nothing(ticket, tmp_path):
    ticket.save_pretrained(tmp_path / "copy")
    copy = tombola.Ticket.from_pretrained(tmp_path / "copy")
    assert copy.mask == ticket.mask
    assert copy.info == ticket.info


def test_a_ticket_is_not_saved_into_another_one(ticket, world, tmp_path):
    """Its defense would stay, and correct the texts of a ticket that was trained without."""
    recipe = world.recipe(search={"method": "random"}, defend="unicode")
    result = tombola.run(recipe, output=tmp_path / "out", store=tmp_path / "store")
    other = result.folder / result.cells[0].ticket
    assert (other / "defense.json").is_file()
    with pytest.raises(TombolaError, match="already exists: choose another folder"):
        ticket.save_pretrained(other)
    assert tombola.Ticket.from_pretrained(other).recipe["defend"]


def test_the_card_tells_of_a_defense_that_the_model_came_with(world, tmp_path):
    recipe = world.recipe(search=None, defend="unicode", train={"epochs": 0, "max_length": 16})
    first = tombola.run(recipe, output=tmp_path / "first", store=tmp_path / "store")
    model = first.folder / first.cells[0].model
    recipe = {**recipe, "model": str(model), "search": {"method": "random"}, "retrain": None}
    second = tombola.run({**recipe, "defend": []}, output=tmp_path / "second", store=tmp_path / "store")
    ticket = second.folder / second.cells[0].ticket
    assert (ticket / "defense.json").read_bytes() == (model / "defense.json").read_bytes()
    assert "Correct texts before tokenising them (unicode, stored in" in (ticket / "README.md").read_text()


def test_a_mask_without_retraining_is_in_the_weights_of_the_folder(world, tmp_path):
    recipe = world.recipe(search={"method": "magnitude", "start": "finetuned"}, retrain=None)
    result = tombola.run(recipe, output=tmp_path / "out", store=tmp_path / "store")
    ticket = tombola.Ticket.from_pretrained(result.folder / result.cells[0].ticket)
    weights = dict(ticket.model().base_model.named_parameters())
    assert all((weights[f"{name}.weight"][~kept] == 0).all() for name, kept in ticket.mask.items())


@pytest.mark.parametrize(
    ("search", "draw"),
    [
        (
            {"method": "iterative", "step": 0.25},
            {"sparsity": 0.5},
        ),  # trained under the mask of the round before
        ({"method": "sparsegpt", "start": "finetuned"}, {"sparsity": 0.5, "perturb": 0.2}),
    ],
)
def test_a_model_made_under_another_mask_is_masked_by_the_tickets_own(world, tmp_path, search, draw):
    recipe = world.recipe(search=search, draw=draw, retrain=None, evaluate={"on": ["validation", "other"]})
    result = tombola.run(recipe, output=tmp_path / "out", store=tmp_path / "store")
    ticket = tombola.Ticket.from_pretrained(result.folder / result.cells[0].ticket)
    weights = dict(ticket.model().base_model.named_parameters())
    assert all((weights[f"{name}.weight"][~kept] == 0).all() for name, kept in ticket.mask.items())
    assert tombola.evaluate(ticket, ["validation", "other"]) == {
        on: result.cells[0].scores[on] for on in ("validation", "other")
    }


def test_what_is_not_a_ticket_is_told_so(world, ticket, tmp_path):
    with pytest.raises(TombolaError, match=r"is a model but not a ticket: it has no ticket\.json"):
        tombola.Ticket.from_pretrained(world.model)
    ticket.save_pretrained(tmp_path / "old")
    info = {**ticket.info, "format": 99}
    (tmp_path / "old" / "ticket.json").write_text(json.dumps(info))
    with pytest.raises(
        TombolaError, match=r"ticket\.json does not match its checksum.*delete .*checksums\.json"
    ):
        tombola.Ticket.from_pretrained(tmp_path / "old")
    (tmp_path / "old" / "checksums.json").unlink()
    with pytest.raises(TombolaError, match="format '99'"):
        tombola.Ticket.from_pretrained(tmp_path / "old")


def test_it_is_ready_for_the_hub(ticket, monkeypatch):
    calls = {}

    class Api:
        def __init__(self, token=None):
            calls["token"] = token

        def create_repo(self, repo_id, private=None, exist_ok=False):
            calls["repo"] = (repo_id, private, exist_ok)

        def upload_folder(self, repo_id, folder_path, commit_message):
            calls["folder"] = folder_path
            return "address"

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    assert ticket.push_to_hub("me/ticket", private=True) == "address"
    assert calls == {"token": None, "repo": ("me/ticket", True, True), "folder": ticket.folder}
    assert all(
        path.suffix in (".json", ".safetensors", ".md", ".txt", ".yaml") for path in ticket.folder.iterdir()
    )


def test_a_mask_for_another_model_is_refused_with_both_fingerprints(ticket, tmp_path):
    from tests.world import make_world

    (tmp_path / "w").mkdir()
    other = make_world(tmp_path / "w")
    from tests.tiny import tiny

    changed = tiny("bert", "base", seed=7, vocab_size=25)
    changed.save_pretrained(other.model)
    recipe = other.recipe(search={"method": "given", "masks": [str(ticket.folder)]})
    with pytest.raises(TombolaError) as caught:
        tombola.run(recipe, output=tmp_path / "out", store=tmp_path / "store")
    from tombola.masks import fingerprint

    assert Mask.load(ticket.folder / "mask.safetensors").base.fingerprint in str(caught.value)
    assert fingerprint(changed).fingerprint in str(caught.value)


def test_a_flipped_bit_in_any_file_of_a_ticket_is_named(ticket, tmp_path):
    ticket.save_pretrained(tmp_path / "copy")
    files = [path for path in (tmp_path / "copy").iterdir() if path.name != "README.md"]
    assert {"model.safetensors", "ticket.json", "config.json", "mask.safetensors"} <= {
        one.name for one in files
    }
    for file in files:
        whole = file.read_bytes()
        for place in (0, len(whole) // 3, len(whole) - 1):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(DamagedArtefact, match=r"is damaged; copy or create it again"):
                tombola.Ticket.from_pretrained(tmp_path / "copy")
            with pytest.raises(DamagedArtefact):
                tombola.evaluate(tmp_path / "copy")
        file.write_bytes(whole)
    (tmp_path / "copy" / "README.md").write_text("my own words")
    tombola.Ticket.from_pretrained(tmp_path / "copy").model()
