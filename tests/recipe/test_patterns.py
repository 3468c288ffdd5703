"""What recipes may say of patterns and rows, and the sentence that every contradiction gets."""

import pytest

from tests.recipe.test_recipe import BASE, refused
from tombola.recipe.grid import expand

WANDA = {"method": "wanda"}


def test_a_pattern_says_how_much_goes():
    cells = expand({**BASE, "search": WANDA, "draw": {"pattern": ["2:4", " 1:4", "16 x 16"]}})
    assert [cell.recipe.draw.sparsity for cell in cells] == [0.5, 0.75, 0.5]
    assert [cell.recipe.draw.pattern for cell in cells] == ["2:4", "1:4", "16x16"]
    (cell,) = expand({**BASE, "search": WANDA, "draw": {"pattern": "4:8", "sparsity": 0.5}})
    assert cell.recipe.draw.sparsity == 0.5
    blocks = {"pattern": "8x1", "sparsity": 0.3, "scope": "local"}
    (cell,) = expand({**BASE, "search": {"method": "magnitude"}, "draw": blocks})
    assert (cell.recipe.draw.sparsity, cell.recipe.draw.scope) == (0.3, "local")
    (cell,) = expand({**BASE, "search": WANDA, "draw": {"pattern": "1:4", "sparsity": None}})
    assert cell.recipe.draw.sparsity == 0.75


@pytest.mark.parametrize(
    ("search", "draw", "sentence"),
    [
        (WANDA, {"pattern": "4:2"}, "draw.pattern: '4:2' must keep at least one weight"),
        (WANDA, {"pattern": "dense"}, "draw.pattern: 'dense' is not a pattern: write 2:4"),
        (
            WANDA,
            {"pattern": "2:4", "sparsity": 0.3},
            "draw: pattern: 2:4 removes 0.5 of the weights, not 0.3",
        ),
        (WANDA, {"pattern": "2:4", "scope": "row"}, "draw: scope: 2:4 ranks the weights within each group"),
        (WANDA, {"pattern": "2:4", "perturb": 0.1}, "draw: pattern: swapping units would break it"),
        (WANDA, {"pattern": "2:4", "heads": 3}, "draw: pattern: applies to single weights, but heads"),
        (WANDA, {"pattern": "16x16", "speedup": 2}, "draw: pattern: applies to single weights, but speedup"),
        (
            {"method": "importance"},
            {"pattern": "2:4"},
            "draw.pattern: needs search.units: weight, not head+ffn",
        ),
        (
            {"method": "magnitude", "units": "row"},
            {"pattern": "16x16"},
            "needs search.units: weight, not row",
        ),
        ({"method": "magnitude", "biases": True}, {"pattern": "2:4"}, "leave out search.biases"),
        ({"method": "iterative"}, {"pattern": "2:4"}, "draw.pattern: iterative draws more than once"),
        (
            {"method": "given", "masks": ["a"]},
            {"pattern": "2:4"},
            "draw.pattern: does not apply to a given mask",
        ),
        (
            WANDA,
            {"scope": "global"},
            "draw.scope: wanda prunes layer by layer; use local or row, or search.sequential: false",
        ),
        ({"method": "sparsegpt"}, {"scope": "global"}, "use local or row"),
        ({"method": "magnitude", "units": "head"}, {"scope": "row"}, "draw.scope: row ranks single weights"),
        (
            {"method": "importance"},
            {"scope": "local"},
            "draw.scope: importance ranks the units of the whole model",
        ),
        ({"method": "layers"}, {"scope": "local"}, "draw.scope: layers ranks the units of the whole model"),
        (WANDA, {"scope": "column"}, "draw.scope: must be 'global', 'local' or 'row', not 'column'"),
    ],
)
def test_contradictions_get_a_sentence(search, draw, sentence):
    assert sentence in refused(search=search, draw=draw)


def test_blocks_can_be_removed_in_rounds():
    (cell,) = expand({**BASE, "search": {"method": "iterative"}, "draw": {"pattern": "16x16"}})
    assert cell.recipe.draw.pattern == "16x16"


def test_wanda_of_the_dense_model_may_be_ranked_over_all_layers():
    (cell,) = expand({**BASE, "search": {**WANDA, "sequential": False}, "draw": {"scope": "global"}})
    assert cell.recipe.draw.scope == "global"
