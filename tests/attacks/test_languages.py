"""Attacks on texts that are not English: letters of every script, and word lists that users bring."""

from random import Random
from unicodedata import category, name

import pytest
import yaml

import tombola
from tests.attacks.toys import BagOfWords, SharedWords, attack_one, neighbours
from tests.tiny import tiny
from tests.words import word_tokenizer
from tests.world import World
from tombola.api.orders import Order, plan_compression
from tombola.attacks import MissingResource, Resources, Text, attacks, configure, edits
from tombola.errors import DataError, RecipeError
from tombola.tasks import Task
from tombola.words.lexicon import read_lexicon
from tombola.words.scripts import alphabet, letters

SENTENCES = {  # a text, its words, and the one that decides
    "greek": ("Η ταινία ήταν υπέροχη.", ["Η", "ταινία", "ήταν", "υπέροχη"], "υπέροχη"),
    "arabic": ("الفيلمُ كانَ رائعًا؟ نعم", ["الفيلمُ", "كانَ", "رائعًا", "نعم"], "رائعًا"),
    "devanagari": ("यह फ़िल्म बहुत अच्छी है।", ["यह", "फ़िल्म", "बहुत", "अच्छी", "है"], "अच्छी"),
    "chinese": ("电影很好，我爱它。", list("电影很好我爱它"), "好"),
    "russian": ("Фильм был прекрасный!", ["Фильм", "был", "прекрасный"], "прекрасный"),
}
TAGS = (
    "word\ttags\tsynonyms\nder\tDET\t\nfilm\tNOUN\tstreifen kinofilm\ngut\tADJ\tprima\nsieben\tNUM\t\nprima\n"
)


@pytest.mark.parametrize("script", SENTENCES)
def test_words_are_whole_and_nothing_is_lost(script):
    text, words, _ = SENTENCES[script]
    assert list(Text(text).words) == words
    assert Text(text).columns == (text,)


@pytest.mark.parametrize("script", SENTENCES)
def test_edits_stay_in_the_script_and_leave_no_sign_without_its_letter(script):
    for word in SENTENCES[script][1]:
        scripts = {name(letter).split()[0] for letter in word if category(letter)[0] == "L"}
        for edit in (edits.swap, edits.substitute, edits.delete, edits.insert):
            for seed in range(20):
                made = edit(word, Random(seed))
                if made is None:
                    continue
                assert {name(one).split()[0] for one in made if category(one)[0] == "L"} <= scripts
                assert category(made[0])[0] == "L"


@pytest.mark.parametrize("script", SENTENCES)
def test_misspellings_change_the_label_in_any_script(script):
    text, _, decisive = SENTENCES[script]
    model = BagOfWords({decisive: 2.0}, labels=2)
    tools = Resources(language="xx")
    found = attack_one(configure("deepwordbug", {}), model, text, 1, tools)
    # without the decisive word both labels are equally likely, and the first one wins
    assert found.result_type == "Successful"
    assert [found.original_text.words[i] for i in found.changes] == [decisive]
    assert found.similarity is None


def test_letters_keep_their_signs_and_latin_ones_are_as_ever():
    assert letters("अच्छी") == ["अ", "च्", "छी"]
    assert letters("cafe\u0301s") == ["c", "a", "f", "e\u0301", "s"]
    assert "".join(alphabet("é")) == "".join(alphabet("q")) == "abcdefghijklmnopqrstuvwxyz"
    assert set("αβγ") <= set(alphabet("Δ"))
    assert {name(one).split()[0] for one in alphabet("影")} == {"CJK"}


def test_look_alikes_of_other_scripts_are_latin():
    assert edits.substitute_look_alike("ο", Random(0)) == "o"
    assert edits.substitute_look_alike("好", Random(0)) is None


@pytest.mark.parametrize(
    "attack", ["textfooler", "textbugger", "pwws", "embedding_swap", "random_substitution"]
)
def test_attacks_that_need_english_words_say_so_before_they_ask_the_model(attack):
    tokenizer = word_tokenizer(["gut film"])
    model = tiny("bert", vocab_size=len(tokenizer), num_labels=2)
    with pytest.raises(
        MissingResource, match=rf"{attack} needs .* only has for English.*'de'.*--lexicon FILE.*deepwordbug"
    ):
        tombola.attack(model, attack, tokenizer=tokenizer, examples=[("gut", 0)], language="de")


def test_every_attack_that_opens_a_resource_says_that_it_needs_it(tmp_path):
    """What `needs` promises is what an attack really opens: with all of it given, none is missing."""
    (tmp_path / "de.tsv").write_text(TAGS)
    model = BagOfWords({"gut": 2.0}, labels=2)
    for kind in ("textfooler", "textbugger", "pwws", "embedding_swap", "random_substitution", "deepwordbug"):
        attack = attacks[kind]()
        given = Resources(
            vectors="v" if "vectors" in attack.needs else None,
            encoder="e" if "encoder" in attack.needs else None,
            words=tmp_path / "de.tsv" if "lexicon" in attack.needs else None,
            language="de",
        )
        given.require(attack)
        if "vectors" in attack.needs:
            given.neighbours = neighbours({"gut": {"prima": 0.9}})
        if "encoder" in attack.needs:
            given.similarity = SharedWords()
        else:
            given.encoder = None
        assert attack_one(attack, model, "der film gut", 1, given).result_type in ("Successful", "Failed")


def test_a_resource_that_the_attack_does_not_use_is_reported(caplog):
    tokenizer = word_tokenizer(["gut film"])
    model = tiny("bert", vocab_size=len(tokenizer), num_labels=2)
    examples = [("gut", 0)]
    tombola.attack(
        model, "deepwordbug", tokenizer=tokenizer, examples=examples, vectors="v.txt", encoder="minilm"
    )
    assert "vectors: has no effect, since deepwordbug does not use it; leave it out" in caplog.messages


def test_a_users_lexicon(tmp_path):
    (tmp_path / "de.tsv").write_text(TAGS)
    lexicon = read_lexicon(tmp_path / "de.tsv")
    assert lexicon.synonyms("Film") == ["streifen", "kinofilm"]
    assert [lexicon.is_stop_word(word) for word in ("Der", "film", "sieben", "unbekannt")] == [
        True, False, False, False,
    ]  # fmt: skip
    assert lexicon.same_part_of_speech("gut", "prima")  # which has no tags, so it may be any
    assert not lexicon.same_part_of_speech("gut", "film")
    model = BagOfWords({"gut": 2.0}, labels=2)
    found = attack_one(
        configure("pwws", {}), model, "der Film gut", 1, Resources(words=tmp_path / "de.tsv", language="de")
    )
    assert found.changes == {2: "prima"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"film\tNOUN\n", ":1: the columns of a lexicon are word, tags, synonyms"),
        (b"word\ttags\tsynonyms\na\tb\tc\td\n", ":2: a line has a word, its tags and its synonyms"),
        (
            b"word\ttags\tsynonyms\ngut\tADJ\tprima\nfilm\tNN\t\n",
            ":3: 'NN' is not a tag of Universal Dependencies",
        ),
        (b"word\ttags\tsynonyms\nessen\tVERB\t\nEssen\tNOUN\tMahl\n", ":3: 'essen' has a line already"),
        (b"word\ttags\tsynonyms\n", "contains no words"),
        (b"\xff\xfe\x00", "a lexicon is UTF-8 text"),
        (b"", "a lexicon is UTF-8 text"),
    ],
)
def test_a_lexicon_that_cannot_be_read(tmp_path, content, told):
    (tmp_path / "words.tsv").write_bytes(content)
    with pytest.raises(DataError, match=told):
        read_lexicon(tmp_path / "words.tsv")
    with pytest.raises(DataError, match="there is no such lexicon"):
        read_lexicon(tmp_path / "nowhere.tsv")


@pytest.fixture
def german(world: World, tmp_path):
    """The world's task, said to be German."""
    raw = yaml.safe_load(world.task.read_text())
    raw |= {"language": "de", "name": "deutsch"}
    for split in ("train", "validation", "other"):
        (tmp_path / f"{split}.tsv").write_text((world.task.parent / f"{split}.tsv").read_text())
    (tmp_path / "de.yaml").write_text(yaml.safe_dump(raw))
    return tmp_path / "de.yaml"


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"attack": {"recipes": ["textfooler"]}}, r"textfooler needs .*'de'"),
        (
            {"train": {"augment": {"of": ["synonyms"]}}},
            r"built-in synonyms are English, but deutsch is in 'de'",
        ),
        ({"defend": ["spelling"]}, r"dictionary: null"),
        ({"train": {"adversary": {"kind": "attack", "recipe": "pwws"}}}, r"pwws needs"),
    ],
)
def test_a_recipe_that_needs_english_words_is_refused_before_the_work(world, german, part, told):
    recipe = world.recipe(task=str(german))
    merged = {**recipe, **{key: {**recipe.get(key, {}), **value} if isinstance(value, dict) else value
                           for key, value in part.items()}}  # fmt: skip
    with pytest.raises((RecipeError, MissingResource), match=told):
        tombola.api.plan_run(merged)


def test_compress_leaves_out_what_knows_english_words_alone(world, german):
    raw, notes = plan_compression(Order(str(world.model), str(german)))
    assert raw["defend"] == ["unicode", {"kind": "spelling", "dictionary": None}]
    assert raw["attack"]["recipes"] == [{"name": "deepwordbug"}]
    assert "textfooler: skipped, since the package only has English words" in notes


def test_a_language_is_a_code(german, tmp_path):
    assert Task.named(str(german)).language == "de"
    assert not Task.named(str(german)).english
    assert Task.named("reviews").english
    german.write_text(german.read_text().replace("language: de", "language: German"))
    with pytest.raises(RecipeError, match="language"):
        Task.named(str(german))
