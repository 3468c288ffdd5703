"""Augmentations that do not know a script leave its texts as they are, which is said before the work."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.world import World, make_world, sentences
from tombola.api.orders import Order, plan_compression
from tombola.api.running import plan_run
from tombola.augmentations import Casing, Homoglyphs, Punctuation, Resources, Typos, Whitespace
from tombola.augmentations.copies import changed_split
from tombola.augmentations.reach import unchanged_by
from tombola.errors import RecipeError
from tombola.tasks import Split, Task

KNOWN = {
    "en": "It's a film that you don't forget, at www.film.org",
    "de": "Über Größe läßt sich streiten",
    "el": "Μια ταινία που δεν ξεχνάς",
    "ru": "Фильм, который не забудешь",
}
UNKNOWN = {
    "ar": "هذا الفيلم رائع جدا",
    "hi": "यह फ़िल्म बहुत अच्छी है",
    "zh": "这部电影非常好看 iPhone",
    "ko": "이 영화는 정말 좋아요",
    "he": "הסרט הזה נהדר",
    "th": "หนังเรื่องนี้ดีมาก",
}


def split_of(*texts: str) -> Split:
    count = range(len(texts))
    return Split(
        Task.named("sst2"),
        "train",
        [(text,) for text in texts],
        [0 for _ in count],
        [str(i) for i in count],
        "",
    )


@pytest.mark.parametrize("text", [*KNOWN.values(), *UNKNOWN.values()])
def test_what_is_said_is_what_happens(text):
    split = split_of(*[text] * 40)
    changed = changed_split(split, "typos", Resources()).texts != split.texts
    known = text in KNOWN.values()
    assert unchanged_by([Typos(), Casing(), Homoglyphs()], split) == (
        [] if known else ["typos", "casing", "homoglyphs"]
    )
    assert changed == (known or "iPhone" in text)
    assert unchanged_by([Punctuation(), Whitespace()], split) == []


def test_english_synonyms_are_not_put_into_other_languages():
    german = Task.named("sst2").model_copy(update={"language": "de"})
    split = replace(split_of("an die Wand", "bald ist die Art gut"), task=german)
    with pytest.raises(
        RecipeError, match=r"evaluate\.on: train\+synonyms: the built-in synonyms are English"
    ):
        changed_split(split, "synonyms", Resources())
    assert changed_split(split, "typos", Resources()).name == "train+typos"


def test_half_of_the_letters_decide():
    assert unchanged_by([Typos()], split_of(KNOWN["en"], KNOWN["de"], UNKNOWN["ar"])) == []
    assert unchanged_by([Typos()], split_of(UNKNOWN["th"], UNKNOWN["ar"], "good")) == ["typos"]
    assert unchanged_by([Typos()], split_of("12 34", "!")) == []


@pytest.fixture(scope="module")
def arabic(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The small world, its sentences in Arabic letters."""
    folder = tmp_path_factory.mktemp("arabic")
    world = make_world(folder)
    letters = dict(zip("abcdefghijklmnopqrstuvwxyz", "ابتثجحخدذرزسشصضطظعغفقكلمنه", strict=True))
    for seed, split in enumerate(("train", "validation", "other")):
        rows = [(text.translate(str.maketrans(letters)), label) for text, label in sentences(40, seed)]
        lines = ["sentence\tlabel", *("\t".join(row) for row in rows)]
        Path(folder, f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    task = yaml.safe_load(world.task.read_text())
    world.task.write_text(yaml.safe_dump({**task, "language": "ar"}))
    return world


WHY = (
    "typos changes only Latin, Greek and Cyrillic letters, but 100% of the letters in tiny/{} are in other scripts; an "
    "attack during training, `adversary: {{kind: attack, recipe: deepwordbug}}`, misspells words of any script"
)


def test_a_recipe_says_it_once_before_the_work(arabic, caplog):
    train = arabic.recipe()["train"] | {"augment": {"of": ["typos"]}}
    recipe = arabic.recipe(
        train=train, draw={"sparsity": [0.2, 0.4]}, search={"method": "magnitude"}, seed=[1, 2]
    )
    plan_run({**recipe, "evaluate": {"on": ["validation", "validation+typos"]}})
    assert [one.message for one in caplog.records] == [
        f"train.augment: {WHY.format('train')}",
        f"evaluate.on: validation+typos: {WHY.format('validation')}",
    ]
    caplog.clear()
    adversary = {"kind": "attack", "recipe": "deepwordbug"}
    plan_run(arabic.recipe(train=arabic.recipe()["train"] | {"adversary": adversary}))
    assert caplog.records == []


def test_compress_leaves_typos_out_and_says_so(arabic, world, caplog):
    raw, _ = plan_compression(Order(str(arabic.model), str(arabic.task)))
    assert [one.message for one in caplog.records] == [f"--against typos is skipped: {WHY.format('train')}"]
    assert "augment" not in raw["search"]
    assert "augment" not in raw["retrain"]
    assert (raw["search"]["inputs"], raw["defend"], raw["evaluate"]["on"]) == ("clean", [], ["validation"])
    caplog.clear()
    raw, _ = plan_compression(Order(str(world.model), str(world.task)))
    assert raw["retrain"]["augment"]["of"] == ["typos"]
    assert raw["evaluate"]["on"] == ["validation", "validation+typos"]
    assert caplog.records == []
