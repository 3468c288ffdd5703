"""Claims in recipes: what they may name, and the sentence for what they may not."""

import pytest

from tombola.errors import RecipeError
from tombola.foundations.settings import checked
from tombola.foundations.yaml12 import dump_yaml
from tombola.recipe.checking import check_file
from tombola.recipe.claims import check_targets, read_claims
from tombola.recipe.grid import expand
from tombola.recipe.reading import load_recipe
from tombola.recipe.study import StudyRecipe, load_study, study_cells, study_claims

BASE = {
    "name": "r",
    "model": "minilm",
    "task": "reviews",
    "search": {"method": "magnitude"},
    "draw": {"sparsity": [0.3, 0.5]},
    "variants": {"dense": {"search": None}, "omp": {}, "random": {"search": {"method": "random"}}},
}
BEATS = {"variant": "omp", "over": "random"}


def refused(**claims):
    with pytest.raises(RecipeError) as caught:
        expand({**BASE, "claims": claims})
    return caught.value.mistakes


def test_claims_change_no_cell():
    assert expand({**BASE, "claims": {"beats random": BEATS}}) == expand(BASE)


@pytest.mark.parametrize(
    ("claim", "mistake"),
    [
        (
            {"variant": "omp", "over": "rando"},
            "claims.c.over: unknown variant 'rando'. Did you mean 'random'?",
        ),
        ({"variant": "omp"}, "claims.c.over: is required"),
        ({**BEATS, "margin": 1}, "claims.c: unknown key 'margin'."),
        ({"variant": "omp", "over": "omp"}, "claims.c: compares omp with itself"),
        ({**BEATS, "at": {"draw.sparsty": 0.5}}, "claims.c.at: unknown axis 'draw.sparsty'."),
        (
            {**BEATS, "at": {"draw.sparsity": 0.7}},
            "claims.c.at.draw.sparsity: the grid has 0.3, 0.5, not 0.7",
        ),
        ("omp > random", "claims.c: takes a mapping of settings, not 'omp > random'"),
    ],
)
def test_a_mistake_in_a_claim_is_named(claim, mistake):
    (told,) = refused(c=claim)
    assert told.startswith(mistake)


def test_all_mistakes_of_all_claims_are_told_at_once():
    assert len(refused(a={"over": "omp"}, b={"variant": "omp"})) == 2
    assert len(refused(a={"variant": "x1", "over": "x2"}, b=BEATS)) == 2


def test_a_claim_about_a_dropped_variant_says_how_to_drop_it_too():
    variants = {name: changes for name, changes in BASE["variants"].items() if name != "random"}
    with pytest.raises(RecipeError, match=r"claims\.c=null drops the claim"):
        expand({**BASE, "variants": variants, "claims": {"c": BEATS}})
    expand({**BASE, "variants": variants, "claims": {"c": None}})
    assert read_claims({"claims": {"c": None}}) == {}


@pytest.mark.parametrize("change", ["variants=[dense, omp]", "variants.random=null"])
def test_a_claim_goes_with_the_variant_that_it_is_about(change):
    recipe = {**BASE, "claims": {"gone": BEATS, "kept": {"variant": "omp", "over": "dense"}}}
    chosen = load_recipe(recipe, [change])
    assert list(read_claims(chosen)) == ["kept"]
    expand(chosen)


def test_a_claim_about_something_that_is_not_scored_is_refused():
    claims = read_claims({"claims": {"c": {**BEATS, "on": "textfoole"}}})
    with pytest.raises(RecipeError, match=r"claims\.c\.on: unknown data set or attack.*'textfooler'"):
        check_targets(claims, ["validation", "textfooler"])
    check_targets(claims, ["textfoole"])


def claims_of(source, *overrides):
    study = checked(StudyRecipe, load_study(source, overrides))
    return study_claims(study, study_cells(study))


def test_a_recipe_run_as_a_study_keeps_its_claims_and_changes_to_them():
    recipe = {**BASE, "claims": {"a": BEATS, "b": {"variant": "omp", "over": "dense", "by": -1}}}
    assert set(claims_of(recipe)) == {"a", "b"}
    left = claims_of(recipe, "claims.a=null", "claims.b.by=-2")
    assert {name: claim.by for name, claim in left.items()} == {"b": -2}
    assert claims_of(recipe, "claims=null") == {}


def test_each_of_several_recipes_claims_for_itself():
    one, other = {**BASE, "name": "one", "claims": {"a": BEATS}}, {**BASE, "name": "other"}
    found = claims_of({"recipes": [one, other], "claims": {"both": BEATS}})
    assert found["both"].at == {}
    assert found["one: a"].at == {"recipe": "one"}
    assert len(found) == 2


def test_changes_to_a_study_reach_its_own_claims():
    study = {
        "name": "s",
        "recipes": {"r": BASE},
        "claims": {"gone": BEATS, "kept": {**BEATS, "over": "dense"}},
    }
    assert set(claims_of(study)) == {"gone", "kept"}
    assert set(claims_of(study, "claims.gone=null")) == {"kept"}
    assert set(claims_of(study, "variants=[dense, omp]")) == {"kept"}
    assert claims_of(study, "claims.kept.by=-2")["kept"].by == -2
    assert claims_of(study, "claims=null") == {}
    assert load_study(study, ["name=t"])["name"] == "t"


@pytest.mark.parametrize("wrong", [{"variant": "opm"}, {"on": "tset"}])
def test_validation_checks_the_claims_of_recipes_and_studies(tmp_path, wrong):
    claims = {"c": {**BEATS, **wrong}}
    for content in ({**BASE, "claims": claims}, {"recipes": {"r": BASE}, "claims": claims}):
        file = tmp_path / "file.yaml"
        file.write_text(dump_yaml(content))
        with pytest.raises(RecipeError, match=r"claims\.c\.(variant|on): unknown"):
            check_file(str(file))


def test_validation_takes_the_changes_that_a_study_takes(tmp_path):
    file = tmp_path / "study.yaml"
    file.write_text(dump_yaml({"recipes": {"r": BASE}, "claims": {"c": BEATS}}))
    assert check_file(str(file), ["variants=[dense]"]) == "a valid study of 1 recipe, 1 cell"


def test_targets_to_choose_from_are_listed_once():
    claims = read_claims({"claims": {"c": {**BEATS, "on": "nope"}, "d": {**BEATS, "on": "tset"}}})
    with pytest.raises(RecipeError) as told:
        check_targets(claims, ["validation", "test"] * 3)
    assert told.value.mistakes == (
        "claims.c.on: unknown data set or attack 'nope'. Valid: test, validation.",
        "claims.d.on: unknown data set or attack 'tset'. Did you mean 'test'?",
    )
