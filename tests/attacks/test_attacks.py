"""Every attack against a linear classifier: what it must find, and with how many queries."""

from typing import ClassVar, Literal

import pytest

from tests.attacks.toys import BagOfWords, SharedWords, attack_one, resources
from tombola.attacks import (
    PWWS,
    Attack,
    BertAttack,
    DeepWordBug,
    EmbeddingSwap,
    MissingResource,
    RandomSubstitution,
    Resources,
    TextBugger,
    TextFooler,
)
from tombola.attacks.constraints import levenshtein

POSITIVE = BagOfWords({"good": 2.0, "warm": 1.0, "fine": 1.5, "nice": 0.5, "decent": -4.0, "cold": -1.0})


def fresh(weights=None, labels=2):
    return BagOfWords(weights or {word: w.tolist() for word, w in POSITIVE.weights.items()}, labels)


class Prefers(SharedWords):
    """An encoder that likes texts with one word best."""

    def __init__(self, word):
        self.word = word

    def __call__(self, pairs):
        return [0.99 if self.word in changed.split() else 0.98 for _, changed in pairs]


class TestTextFooler:
    table = {"good": {"fine": 0.9, "nice": 0.8, "decent": 0.6, "bad": 0.4}, "warm": {"cold": 0.7}}

    def test_the_most_important_word_goes_first_and_its_best_synonym_wins(self):
        model = fresh()
        found = attack_one(TextFooler(), model, "The plot is warm and good .", 1, resources(self.table))
        assert found.result_type == "Successful"
        assert found.perturbed_text.columns == ("The plot is warm and decent .",)
        # the text, three content words left out, three synonyms above 0.5 (not "bad")
        assert found.num_queries == len(model.asked) == 1 + 3 + 3

    def test_replacements_add_up_until_the_label_changes(self):
        table = {"good": {"nice": 0.8}, "warm": {"cold": 0.7}}
        found = attack_one(TextFooler(), fresh(), "The plot is warm and Good .", 1, resources(table))
        assert (found.changes, found.result_type) == ({3: "cold", 5: "Nice"}, "Successful")
        assert found.num_queries == 1 + 3 + 1 + 1

    @pytest.mark.parametrize("word", ["decent", "dire"])
    def test_of_two_successes_the_more_similar_is_taken(self, word):
        model = fresh({"good": 2.0, "decent": -4.0, "dire": -9.0})
        table = {"good": {"decent": 0.9, "dire": 0.8}}
        found = attack_one(TextFooler(), model, "a good plot", 1, resources(table, Prefers(word)))
        assert found.perturbed_text.words[1] == word

    def test_a_synonym_of_another_part_of_speech_is_not_tried(self):
        table = {"good": {"decently": 0.9}}
        model = fresh({"good": 2.0, "decently": -9.0})
        found = attack_one(TextFooler(), model, "a good plot", 1, resources(table))
        assert (found.result_type, found.num_queries) == ("Failed", 3)

    def test_similarity_is_demanded_of_texts_as_long_as_the_window_only(self):
        strict = TextFooler(min_similarity=0.9, window=4)
        table = {"good": {"decent": 0.9}}
        for text, result in (("very good warm plot", "Failed"), ("good warm plot", "Successful")):
            assert attack_one(strict, fresh(), text, 1, resources(table)).result_type == result

    def test_where_leaving_a_word_out_changes_the_label_the_gain_counts_twice(self):
        model = fresh({"good": 2.0, "bad": -1.0, "decent": -4.0})
        found = attack_one(TextFooler(), model, "bad plot good", 1, resources({"good": {"decent": 0.9}}))
        assert (found.changes, found.num_queries) == ({2: "decent"}, 1 + 3 + 1)

    def test_stop_words_stay(self):
        model = fresh({"the": 5.0, "a": -9.0})
        found = attack_one(TextFooler(), model, "the plot", 1, resources({"the": {"a": 0.9}}))
        assert (found.result_type, found.changes) == ("Failed", {})

    def test_nothing_is_asked_about_a_text_that_the_model_gets_wrong(self):
        found = attack_one(TextFooler(), fresh(), "a cold plot", 1)
        assert (found.result_type, found.num_queries, found.changes) == ("Skipped", 1, {})
        assert (found.original_output, found.perturbed_output, found.ground_truth_output) == (0, 0, 1)

    def test_four_labels(self):
        weights = {"ball": [0, 3, 0, 0], "sphere": [0, 0, 0, 2], "globe": [0, 2.5, 2, 0]}
        table = {"ball": {"globe": 0.9, "sphere": 0.8}}
        found = attack_one(TextFooler(), fresh(weights, 4), "the ball rolls", 1, resources(table))
        assert (found.perturbed_output, found.changes) == (3, {1: "sphere"})

    def test_a_pair_in_which_one_column_is_fixed(self):
        table = {"good": {"decent": 0.9}, "warm": {"cold": 0.9}}
        pair = ("a good plot", "warm film")
        both = attack_one(TextFooler(), fresh(), pair, 1, resources(table))
        assert both.perturbed_text.columns == ("a decent plot", "warm film")
        second = attack_one(TextFooler(), fresh(), pair, 1, resources(table), columns=frozenset({1}))
        assert (second.result_type, second.changes) == ("Failed", {3: "cold"})

    def test_the_budget_ends_the_search(self):
        found = attack_one(TextFooler(), fresh(), "warm and good", 1, resources(self.table), budget=4)
        assert (found.result_type, found.num_queries, found.changes) == ("Failed", 4, {})

    @pytest.mark.parametrize(
        ("budget", "queries", "result", "changes"),
        [
            (3, 3, "Failed", {}),
            (4, 4, "Failed", {1: "globe"}),
            (5, 5, "Successful", {1: "sphere"}),
            (9, 6, "Successful", {1: "sphere"}),
        ],
    )
    def test_what_the_budget_paid_for_counts(self, budget, queries, result, changes):
        weights = {"ball": [0, 3, 0, 0], "sphere": [0, 0, 0, 2], "globe": [0, 2.5, 2, 0]}
        table = {"ball": {"globe": 0.9, "sphere": 0.8, "orb": 0.7}}  # the third candidate is never asked of 5
        found = attack_one(
            TextFooler(), fresh(weights, 4), "the ball rolls", 1, resources(table), budget=budget
        )
        assert (found.num_queries, found.result_type, found.changes) == (queries, result, changes)


class TestEmbeddingSwap:
    def test_neighbours_have_no_least_cosine_but_short_texts_are_not_spared(self):
        table = {"good": {"decent": 0.1}}
        assert (
            attack_one(EmbeddingSwap(), fresh(), "a good plot", 1, resources(table)).result_type == "Failed"
        )
        lax = EmbeddingSwap(min_similarity=0.5)
        found = attack_one(lax, fresh(), "a good plot", 1, resources(table))
        assert (found.result_type, found.changes) == ("Successful", {1: "decent"})

    def test_only_ten_neighbours(self):
        table = {"plot": {f"thing{i}": 0.9 - i / 100 for i in range(12)}}
        model = fresh({"plot": 1.0, "good": 1.0, "thing10": -5.0})
        lax = EmbeddingSwap(min_similarity=0.0)
        found = attack_one(lax, model, "a good plot", 1, resources(table))
        assert (found.result_type, found.num_queries) == ("Failed", 1 + 2 + 10)


class TestPWWS:
    def test_saliency_times_effect_orders_the_words(self):
        # unknown words weigh nothing: "film" is the more salient, but its synonyms do less than those of "car"
        model = fresh({"film": 0.6, "car": 0.5, "movie": 0.5, "auto": -3.0})
        found = attack_one(PWWS(), model, "the film about the car", 1)
        assert (found.changes, found.result_type) == ({4: "auto"}, "Successful")

    def test_every_synonym_is_asked_once_on_the_original_text(self):
        model = fresh({"the": 0.5, "film": 1.0, "movie": -0.1, "car": 1.0, "auto": -0.5})
        found = attack_one(PWWS(), model, "the film about the car", 1)
        assert found.result_type == "Failed"
        assert found.changes == {1: "movie", 4: "auto"}
        lexicon = Resources().lexicon
        synonyms = len(lexicon.synonyms("film")) + len(lexicon.synonyms("car"))
        # text, two saliencies, the synonyms; the first replacement is one of them, the second is new
        assert found.num_queries == len(model.asked) == 1 + 2 + synonyms + 1

    def test_inflected_forms_find_their_lemmas_synonyms(self):
        found = attack_one(PWWS(), fresh({"films": 2.0, "flick": -2.0}), "Films !", 1)
        assert found.perturbed_text.columns == ("Flick !",)


class TestDeepWordBug:
    def test_the_unknown_token_finds_the_word_that_matters_and_a_misspelling_hides_it(self):
        model = fresh({"terrific": 3.0, "film": 0.5, "bias": 0.0})
        model.weights["the"] = POSITIVE.weights["cold"]
        found = attack_one(DeepWordBug(), model, "the film is terrific .", 1)
        assert found.result_type == "Successful"
        assert 3 in found.changes
        assert levenshtein("terrific", found.changes[3]) <= 2
        assert ("the film is [UNK] .",) in model.asked

    def test_stop_words_are_misspelt_too(self):
        found = attack_one(DeepWordBug(), fresh({"the": 2.0, "film": -1.0}), "the film", 1)
        assert (found.result_type, set(found.changes)) == ("Successful", {0})

    def test_no_more_edits_than_allowed(self):
        words = ["aaaa", "bbbb", "cccc", "dddd"]
        model = fresh(dict.fromkeys(words, 1.0))
        found = attack_one(DeepWordBug(max_edits=2), model, " ".join(words), 1)
        assert found.result_type == "Failed"
        assert sum(levenshtein(words[i], new) for i, new in found.changes.items()) <= 2


class TestTextBugger:
    def test_only_sentences_that_speak_for_the_label_are_touched_the_surest_first(self):
        model = fresh({"great": 2.0, "fine": 1.5, "dull": -1.0})
        lax = TextBugger(min_similarity=0.0)
        found = attack_one(lax, model, "A dull start. A fine middle. A great ending.", 1)
        assert found.result_type == "Successful"
        assert set(found.changes) <= {4, 5, 7, 8}
        assert ("A great ending",) in model.asked
        assert not any("A start. A fine middle" in text for (text,) in model.asked)

    def test_a_bug_that_goes_too_far_is_passed_over(self):
        found = attack_one(TextBugger(min_similarity=0.99), fresh(), "a good plot", 1)
        assert (found.result_type, found.changes) == ("Failed", {})

    def test_five_neighbours_are_among_the_bugs(self):
        table = {"go": {f"bad{i}": 0.9 - i / 100 for i in range(9)}}
        model = fresh({"go": 1.0, "bad4": -1.0, "bad5": -9.0})
        found = attack_one(TextBugger(min_similarity=0.0), model, "go", 1, resources(table))
        assert "bad5" not in {text for (text,) in model.asked}
        assert ("bad4",) in model.asked
        assert found.result_type == "Successful"


class TestRandomSubstitution:
    def test_no_more_than_the_allowed_share_is_changed(self):
        table = {"good": {"fine": 0.9}, "warm": {"nice": 0.9}, "plot": {"story": 0.9}, "film": {"movie": 0.9}}
        model = fresh({"good": 9.0, "warm": 9.0, "fine": 9.0, "nice": 9.0})
        found = attack_one(
            RandomSubstitution(max_changed=0.5), model, "good warm plot film", 1, resources(table)
        )
        assert (found.result_type, len(found.changes), found.num_queries) == ("Failed", 2, 3)

    def test_it_stops_at_success(self):
        found = attack_one(
            RandomSubstitution(),
            fresh({"good": 1.0, "bad": -2.0}),
            "good",
            1,
            resources({"good": {"bad": 0.9}}),
        )
        assert (found.result_type, found.num_queries) == ("Successful", 2)


class TestBertAttack:
    def attacked(self, model, text, proposals, **settings):
        toys = resources()
        toys.masked_lm = lambda questions: [
            [proposals[text[a:b]] for a, b in spans] for text, spans, _ in questions
        ]
        return attack_one(BertAttack(**settings), model, text, 1, toys)

    def test_proposals_are_taken_as_they_come_and_the_first_success_ends_it(self):
        model = fresh({"good": 2.0, "fine": 1.0, "dire": -1.0, "bad": -9.0, "plot": 0.1})
        proposals = {"good": ["fine", "not", "dire", "bad"], "plot": ["story"]}
        found = self.attacked(model, "a good plot", proposals, min_similarity=0.0)
        assert found.changes == {1: "dire"}
        # the text, two masked words, "fine", "dire"; the stop word is no candidate, "bad" was never needed
        assert found.num_queries == 1 + 2 + 2
        assert ("a [MASK] plot",) in model.asked

    def test_at_most_two_words_in_five_are_changed(self):
        text = "good warm fine nice plot"
        model = fresh(dict.fromkeys(text.split(), 1.0))
        proposals = {word: [f"x{word}"] for word in text.split()}
        found = self.attacked(model, text, proposals, min_similarity=0.0)
        assert (found.result_type, len(found.changes)) == ("Failed", 2)

    def test_without_a_masked_lm_the_error_says_how_to_get_one(self):
        with pytest.raises(MissingResource, match="bert-base-uncased"):
            attack_one(BertAttack(), fresh(), "a good plot", 1)


class Blind(Attack):
    """Returns a text that it has not asked the model about."""

    paper: ClassVar[str] = "a test"

    name: Literal["blind"] = "blind"

    def perturb(self, text, label, tools):
        yield from ()
        return text.replace(0, "cold")


@pytest.mark.parametrize(("budget", "result"), [(1, "Failed"), (2, "Successful")])
def test_the_last_text_of_an_attack_counts_towards_the_budget(budget, result):
    found = attack_one(Blind(), fresh(), "good plot", 1, budget=budget)
    assert (found.result_type, found.num_queries) == (result, budget)
