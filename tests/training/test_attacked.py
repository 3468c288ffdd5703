"""Attack in the loop: what joins the data, when, and that a kill changes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.toy import same_weights
from tests.world import World
from tombola.attacks.in_the_loop import AttackAdversary
from tombola.augmentations import Augmenter, AugmentSettings
from tombola.augmentations.live import LiveTexts
from tombola.defenses import Unicode, fit_defenses
from tombola.defenses.tokenizing import defended
from tombola.errors import RecipeError, TombolaError
from tombola.gates import L0, Gating, HardConcrete
from tombola.masks import Units
from tombola.models.loading import load_model, load_tokenizer
from tombola.objectives.consistency import COPY
from tombola.objectives.distillation import ADVERSARIAL, Distill
from tombola.recipe.grid import expand
from tombola.tasks import Task, collate_of, encode
from tombola.training import TrainSettings, train
from tombola.training.gated import train_gates


class Killed(BaseException):
    """Stands for a kill."""


def setting(
    world: World, defend: bool = False, augment: AugmentSettings | None = None
) -> tuple[Any, LiveTexts]:
    task = Task.named(str(world.task))
    split, tokenizer = task.load("train").select(range(64)), load_tokenizer(world.model)
    if defend:
        defended(tokenizer, fit_defenses([Unicode()], [text for (text,) in split.texts]))
    augmenter = Augmenter(augment) if augment is not None else None
    return split, LiveTexts.of(encode(split, tokenizer, 16), split, tokenizer, 16, augmenter)


@pytest.fixture(scope="module")
def learned(world: World, tmp_path_factory: Any) -> World:
    """The world with a model that has learned the task, so that there is something to attack."""
    model, data, _ = run(world, tmp_path_factory.mktemp("first"), epochs=15, learning_rate=1e-2)
    folder = tmp_path_factory.mktemp("learned")
    model.save_pretrained(folder)
    data.tokenizer.save_pretrained(folder)
    return World(folder, world.task)


def run(world: World, folder: Path, kill: int | None = None, **options: Any) -> tuple[Any, LiveTexts, Any]:
    split, data = setting(world, options.pop("defend", False), options.get("augment"))
    model = load_model(world.model, split.task, 1)

    def progress(step: int, steps: int, figures: dict[str, float]) -> None:
        if step == kill:
            raise Killed

    settings = {"epochs": 3, "batch_size": 16, "learning_rate": 3e-3, "checkpoint_minutes": 999.0, **options}
    teacher = settings.pop("teacher", None)
    log = train(
        model,
        data,
        TrainSettings(**settings),
        collate=collate_of(split.task, data.tokenizer),
        seed=1,
        precision="fp32",
        folder=folder,
        teacher=teacher,
        progress=progress,
    )
    return model, data, log


def found(folder: Path) -> dict[str, dict[str, Any]]:
    files = sorted((folder / "adversarial").iterdir())
    return {file.name: json.loads(file.read_text())["texts"] for file in files}


def test_successful_texts_stand_behind_their_examples_with_their_labels(world: World) -> None:
    _, data = setting(world)
    plain = data.__getitems__(range(4))
    data.add({2: ("lovely plot",)})
    rows = data.__getitems__(range(4))
    assert [row.pop(ADVERSARIAL) for row in rows] == [0, 0, 0, 1, 0]
    assert rows[:3] == plain[:3]
    assert rows[4:] == plain[3:]
    assert rows[3]["input_ids"] == data.tokenizer("lovely plot")["input_ids"]
    assert rows[3]["labels"] == plain[2]["labels"]
    _, paired = setting(world, augment=AugmentSettings(of=("typos",), share=1.0, consistency=1.0))
    paired.add({0: ("lovely plot",)})
    rows = paired.__getitems__([0])
    assert [row[COPY] for row in rows] == [0, 1, 0]
    assert [row[ADVERSARIAL] for row in rows] == [0, 0, 2]


def test_each_attack_meets_the_model_of_its_epoch(learned: World, tmp_path: Path) -> None:
    adversary = AttackAdversary(share=0.5, every=2)
    model, data, log = run(learned, tmp_path / "attacked", adversary=adversary, epochs=4)
    plain, _, without = run(learned, tmp_path / "plain", epochs=4)
    assert log.steps == without.steps == 16
    assert not same_weights(model, plain)
    texts = found(tmp_path / "attacked")
    assert list(texts) == ["epoch-2.json", "epoch-4.json"]
    for changed in texts.values():
        assert 0 < len(changed) <= 32
        assert all(tuple(new) != data.split.texts[int(index)] for index, new in changed.items())
    assert set(texts["epoch-2.json"]) != set(texts["epoch-4.json"])


@pytest.mark.parametrize(
    ("settings", "attacked"),
    [({"after": 2}, ["epoch-3.json", "epoch-4.json"]), ({"after": 1, "every": 2}, ["epoch-3.json"])],
)
def test_the_first_epochs_may_go_without(
    learned: World, tmp_path: Path, settings: dict[str, int], attacked: list[str]
) -> None:
    run(learned, tmp_path, adversary=AttackAdversary(share=0.1, **settings), epochs=4)
    assert list(found(tmp_path)) == attacked


@pytest.mark.parametrize("kill", [2, 4, 6])  # in the first epoch, at its end, in the second
def test_a_kill_changes_nothing(learned: World, tmp_path: Path, kill: int) -> None:
    options: dict[str, Any] = {
        "adversary": AttackAdversary(share=0.5),
        "augment": AugmentSettings(of=("typos",), consistency=0.5),
        "distill": Distill(),
        "teacher": load_model(learned.model, Task.named(str(learned.task)), 7),
        "defend": True,
    }
    whole, _, log = run(learned, tmp_path / "whole", **options)
    with pytest.raises(Killed):
        run(learned, tmp_path / "killed", kill=kill + 1, checkpoint_minutes=0, **options)
    resumed, _, rest = run(learned, tmp_path / "killed", **options)
    assert rest.resumed_from == kill
    assert rest.curve == log.curve
    assert same_weights(whole, resumed)
    assert found(tmp_path / "whole") == found(tmp_path / "killed")
    assert all(found(tmp_path / "whole").values())


def test_a_kill_inside_an_attack_changes_nothing(
    learned: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tombola.attacks.journal import AttackJournal

    options: dict[str, Any] = {"adversary": AttackAdversary(share=0.5), "checkpoint_minutes": 0}
    whole, _, _ = run(learned, tmp_path / "whole", **options)
    append = AttackJournal.append

    def killing(self: AttackJournal, record: dict[str, Any]) -> None:
        append(self, record)
        if self.path.name == "epoch-2.journal" and len(self.records) == 3:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(AttackJournal, "append", killing)
        with pytest.raises(Killed):
            run(learned, tmp_path / "killed", **options)
    assert (tmp_path / "killed" / "adversarial" / "epoch-2.journal").is_file()
    resumed, _, _ = run(learned, tmp_path / "killed", **options)
    assert same_weights(whole, resumed)


def test_what_cannot_be_attacked_is_refused(world: World, tmp_path: Path) -> None:
    split, data = setting(world)
    with pytest.raises(TombolaError, match="no texts to attack"):
        train(
            load_model(world.model, split.task, 1),
            encode(split, data.tokenizer, 16),
            TrainSettings(adversary=AttackAdversary()),
            collate=collate_of(split.task, data.tokenizer),
            seed=1,
            precision="fp32",
            folder=tmp_path,
        )
    attacked = {**world.recipe()["train"], "adversary": {"kind": "attack"}}
    with pytest.raises(RecipeError, match=r"set search.train.adversary to null"):
        expand(world.recipe(train=attacked, search={"method": "learned"}))
    expand(world.recipe(train=attacked, search={"method": "learned", "train": {"adversary": None}}))
    with pytest.raises(RecipeError, match="masked language model"):
        expand(world.recipe(train={"adversary": {"kind": "attack", "recipe": "bert_attack"}}))
    with pytest.raises(RecipeError, match="steps"):
        expand(world.recipe(train={"adversary": {"kind": "attack", "steps": 3}}))


def test_a_search_attacks_the_weights_under_their_gates(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split, data = setting(world)
    model = load_model(world.model, split.task, 1)
    gating = Gating(Units.of(model, "head"), model, HardConcrete(initial=0.3), L0(), seed=1)
    query = model.base_model.encoder.layer[0].attention.self.query.weight
    seen = []

    def attack(attacked: Any, *arguments: Any, journal: Path, **options: Any) -> dict[int, Any]:
        factors = gating._factors[0].repeat_interleave(len(query) // len(gating._factors[0]))
        own = gating._weights._own["encoder.layer.0.attention.self.query.weight"]
        seen.append(torch.equal(query, own * factors[:, None]) and not torch.equal(query, own))
        journal.parent.mkdir(exist_ok=True)
        journal.touch()
        return {}

    monkeypatch.setattr("tombola.training.attacked.adversarial_texts", attack)
    train_gates(
        model,
        data,
        TrainSettings(epochs=2, batch_size=16, adversary=AttackAdversary()),
        gating,
        collate=collate_of(split.task, data.tokenizer),
        seed=1,
        precision="fp32",
        folder=tmp_path,
        weights_learning_rate=1e-3,
    )
    assert seen == [True, True]
