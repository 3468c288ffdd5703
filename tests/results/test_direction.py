"""Results of a metric that is better when lower: perplexities, in decisions, sentences and tables."""

from tests.results.builder import cell, result
from tombola.cli.tables import matching_lines
from tombola.evaluation.scores import Score
from tombola.report.frontier import frontier as page_frontier
from tombola.report.headline import headline
from tombola.report.parts import Estimate, Table
from tombola.results.conclusion import conclude
from tombola.results.formatting import write_metric, write_value
from tombola.results.frontier import frontier


def perplexity(variant, value, sparsity=None, seed=1, **changes):
    scores = {"validation": {"perplexity": Score(value, 0.5, 60, "delta method")}}
    return cell(variant, scores, sparsity, seed, **changes)


CELLS = [
    *(perplexity("dense", value, seed=seed) for seed, value in enumerate((20.0, 21.0, 22.0))),
    *(perplexity("wanda", 20.5, 0.3, seed) for seed in range(3)),
    *(perplexity("wanda", 21.9, 0.5, seed) for seed in range(3)),
    *(perplexity("wanda", 40.0, 0.7, seed) for seed in range(3)),
    *(perplexity("magnitude", 90.0, 0.3, seed) for seed in range(3)),
]


def test_a_ticket_matches_where_its_perplexity_is_not_above_dense():
    wanda, magnitude = result(*CELLS).matching("validation")
    assert (wanda.within, wanda.strict) == (0.5, 0.3)
    assert (magnitude.within, magnitude.strict) == (None, None)


def test_the_lines_say_above():
    first, second = matching_lines(result(*CELLS))
    assert first.startswith(
        "wanda: matches the dense model on validation up to 50 % sparsity; not above its mean up to 30 %"
    )
    assert second == "magnitude: no ticket matches the dense model on validation"


def test_the_sentence_names_the_lowest():
    cells = [
        perplexity("dense", 20.0),
        perplexity("wanda", 40.0, 0.5),
        perplexity("magnitude", 90.0, 0.5),
    ]
    sentence = conclude(result(*cells))
    assert sentence.startswith("No ticket matches the dense model. The ticket wanda")
    assert "perplexity 40.000 against 20.000 (+20.000, 95 %:" in sentence
    alone = conclude(result(*cells[1:]))
    assert alone.startswith("Best of 2 models: The ticket wanda")


def test_the_front_holds_the_lowest_at_each_sparsity():
    found = frontier(result(*CELLS))
    assert [(one["point"]["variant"], one["clean"]) for one in found] == [
        ("wanda", 20.5),
        ("wanda", 21.9),
        ("wanda", 40.0),
    ]


def test_a_constant_is_beaten_from_above():
    constants = {"validation": 30.0}
    learned, useless = (perplexity("dense", value, constants=constants) for value in (20.0, 29.5))
    assert result(learned).notes == []
    assert "has not learned the task" in result(useless).notes[0]


def test_numbers_are_no_percentages_and_large_ones_are_short():
    assert write_value(31.25, "perplexity") == "31.250"
    assert write_value(1.5e7, "perplexity") == "1.5e+07"
    assert write_value(-0.0001, "accuracy", "+") == "+0.0 %"
    assert write_value(-0.0001, "mcc") == "0.000"
    assert write_metric("perplexity") == "perplexity (lower is better)"
    assert write_metric("accuracy") == "accuracy"


def test_the_page_joins_the_models_that_none_beats():
    section = page_frontier(result(*CELLS))
    (chart,) = section.parts
    assert sorted(spot.y for spot in chart.spots if spot.front) == [20.5, 21.9, 40.0]
    assert section.note.startswith("If lower is better for a score, down or left is better.")


def test_the_page_marks_the_lowest():
    dense = [perplexity("dense", value, seed=seed) for seed, value in enumerate((20.0, 20.1, 20.2))]
    worse = [perplexity("magnitude", value, 0.5, seed) for seed, value in enumerate((90.0, 90.1, 90.2))]
    (table,) = [part for part in headline(result(*dense, *worse)).parts if isinstance(part, Table)]
    scores = [value for row in table.rows for value in row.values if isinstance(value, Estimate)]
    assert [round(score.value, 1) for score in scores if score.best] == [20.1]
