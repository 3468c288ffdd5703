"""Runs side by side: rows that belong together, differences paired by seed, intervals."""

import csv
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy import stats
from typer.testing import CliRunner

import tombola
from tests.results.builder import cell, result
from tombola.cli import app
from tombola.cli.tables import comparison_table
from tombola.errors import TombolaError, UnknownName
from tombola.results.comparing import only
from tombola.results.differences import estimate_difference

FIRST = [0.80, 0.84, 0.82]
SECOND = [0.83, 0.86, 0.86]


def imp(scores, name="a", seeds=None, **changes):
    seeds = seeds or range(1, len(scores) + 1)
    return result(
        *(cell("imp", score, 0.5, seed, **changes) for score, seed in zip(scores, seeds, strict=True)),
        name=name,
        folder=Path("runs") / name,
    )


def test_differences_are_paired_by_seed():
    (row,) = tombola.compare(imp(FIRST), imp(SECOND, "b")).table
    (change,) = row.changes
    expected = stats.ttest_rel(SECOND, FIRST).confidence_interval(0.95)
    assert change.paired
    assert change.estimate.mean == pytest.approx(0.03)
    assert (change.estimate.low, change.estimate.high) == pytest.approx((expected.low, expected.high))
    assert change.clear


def test_a_run_is_not_compared_with_itself():
    with pytest.raises(TombolaError, match="runs/a is given twice: compare different runs"):
        tombola.compare(imp(FIRST), imp(SECOND, "b"), imp(FIRST))


def test_the_order_of_seeds_does_not_matter_and_other_seeds_are_not_paired():
    turned = tombola.compare(imp(FIRST), imp(SECOND[::-1], "b", seeds=[3, 2, 1])).table[0].changes[0]
    assert turned.estimate.std == pytest.approx(np.std(np.subtract(SECOND, FIRST), ddof=1))
    other = tombola.compare(imp(FIRST), imp(SECOND, "b", seeds=[7, 8, 9])).table[0].changes[0]
    welch = stats.ttest_ind(SECOND, FIRST, equal_var=False).confidence_interval(0.95)
    assert not other.paired
    assert (other.estimate.low, other.estimate.high) == pytest.approx((welch.low, welch.high))


@pytest.mark.parametrize("seeds", [[7, 8, 9], [3, 8, 9]])
def test_pages_and_sentences_have_the_interval_of_the_command(seeds):
    first, second = imp(FIRST), imp(SECOND, "b", seeds=seeds)
    (told,) = tombola.compare(first, second).table[0].changes
    change = estimate_difference(first.summaries()[0], second.summaries()[0], "validation")
    welch = stats.ttest_ind(SECOND, FIRST, equal_var=False).confidence_interval(0.95)
    assert change == told
    assert (change.estimate.low, change.estimate.high) == pytest.approx((welch.low, welch.high))


def test_one_seed_has_an_interval_from_the_standard_errors():
    (row,) = tombola.compare(imp([0.8]), imp([0.9], "b")).table
    half = 1.959964 * np.hypot(*(np.sqrt(p * (1 - p) / 100) for p in (0.8, 0.9)))
    estimate = row.changes[0].estimate
    assert (estimate.low, estimate.high) == pytest.approx((0.1 - half, 0.1 + half), abs=1e-6)


def test_rows_are_matched_by_variant_and_grid_even_where_one_run_has_no_grid():
    first = result(cell("dense", 0.9), cell("imp", 0.7, 0.3), cell("imp", 0.6, 0.5), name="a")
    single = cell("imp", 0.65, 0.5).model_copy(update={"axes": {"seed": 1}})
    second = result(cell("dense", 0.91), single, cell("omp", 0.5, 0.5), name="b")
    found = tombola.compare(first, second)
    assert [(row.variant, row.axes["draw.sparsity"]) for row in found.table] == [
        ("dense", None),
        ("imp", 0.5),
    ]
    assert [row.changes[0].estimate.mean for row in found.table] == pytest.approx([0.01, 0.05])
    assert found.notes == ["only in a: imp · 30 % sparse", "only in b: omp · 50 % sparse"]


def test_runs_of_one_row_each_are_compared_whatever_they_are_called():
    second = result(cell("omp", 0.75, 0.3), name="omp")
    (row,) = tombola.compare(imp([0.8], "imp"), second).table
    assert row.changes[0].estimate.mean == pytest.approx(-0.05)
    assert row.sparsities == (0.5, 0.3)


def test_a_row_that_one_of_three_runs_lacks_is_left_empty():
    third = result(cell("imp", 0.9, 0.5), cell("omp", 0.9, 0.5), name="c")
    first = result(cell("imp", 0.8, 0.5), cell("omp", 0.8, 0.5), name="a")
    found = tombola.compare(first, result(cell("imp", 0.7, 0.5), cell("x", 0.7), name="b"), third)
    imp_row, omp_row = found.table
    assert [one.estimate.mean for one in imp_row.changes] == pytest.approx([-0.1, 0.1])
    assert omp_row.changes[0] is None
    assert omp_row.scores[1] is None


def test_tidy_rows_names_and_repr():
    found = tombola.compare(imp(FIRST), result(*imp(SECOND).cells, name="a", folder=Path("runs/other")))
    assert found.names == ["a", "other"]
    first, second = found.rows()
    assert first["difference"] is None
    assert second["difference"] == pytest.approx(0.03)
    assert len(found.frame()) == 2
    assert (
        "imp · sparsity 0.5, validation: 82.0 % ± 2.0, 85.0 % ± 1.7; difference +3.0 (+0.5 to +5.5)"
        in repr(found)
    )
    with pytest.raises(UnknownName, match="data set of these runs 'tset'"):
        only(found, ["tset"])


def test_what_cannot_be_compared_is_said():
    with pytest.raises(TombolaError, match="comparing needs two or more runs"):
        tombola.compare(imp(FIRST))
    with pytest.raises(TombolaError, match=r"have no data set in common \(a: validation; b: test\)"):
        tombola.compare(imp([0.5]), result(cell("imp", {"test": 0.5}, 0.5), name="b"))
    two = result(cell("x", 0.5), cell("y", 0.5), name="b")
    with pytest.raises(TombolaError, match="no variant can be compared: only in"):
        tombola.compare(imp([0.5]), two)
    other = result(cell("imp", 0.5, 0.5, task="sst2"), name="b")
    assert tombola.compare(imp([0.5]), other).notes == ["b has another task: sst2, not reviews"]
    here, there = (
        result(cell("imp", 0.5, 0.5, task=f"{path}/mine.yaml"), name=name)
        for name, path in (("a", "../data"), ("b", "../../data"))
    )
    assert tombola.compare(here, there).notes == []


def shown(found, width=100):
    console = Console(width=width, record=True, file=StringIO())
    console.print(comparison_table(found, only(found, [])))
    return console.export_text()


def test_a_dense_model_has_no_value_on_the_axes_of_a_draw():
    local, everywhere = (cell("imp", 0.8, 0.5, **{"draw.scope": scope}) for scope in ("local", "global"))
    cells = [cell("dense", 0.9), local, everywhere]
    found = tombola.compare(result(*cells, name="a"), result(*cells, name="b"))
    assert [row.label for row in found.table][:2] == ["dense", "imp · scope local · sparsity 0.5"]
    assert "None" not in shown(found)


def test_a_run_of_one_seed_has_its_standard_error_after_the_sign():
    assert "over 3 seeds\n" in shown(tombola.compare(imp(FIRST), imp(SECOND, "b")))
    text = shown(tombola.compare(imp(FIRST), imp([0.8], "b")))
    assert "deviation over up to 3 seeds; ± standard error where there is one seed" in text


def test_data_scored_by_different_metrics_are_left_out_in_words():
    first = result(cell("imp", {"validation": 0.8, "test": 0.8}, 0.5), name="a")
    second = result(cell("imp", {"validation": 0.8, "test": {"mcc": 0.6}}, 0.5), name="b")
    found = tombola.compare(first, second)
    assert [row.on for row in found.table] == ["validation"]
    assert found.notes == ["test is left out: its metrics differ (accuracy, mcc)"]
    with pytest.raises(TombolaError, match=r"no variant can be compared on test: test is left out"):
        only(found, ["test"])


def test_the_table_of_some_data_sets_has_no_others(tmp_path):
    for name in ("a", "b"):
        scores = {"validation": 0.8, "test": 0.7}
        result(cell("imp", scores, 0.5), name=name, folder=tmp_path / name).save()
    file = tmp_path / "t.csv"
    arguments = ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--on", "test", "--table", str(file)]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert {row["on"] for row in csv.DictReader(file.open())} == {"test"}


def test_the_command_prints_a_table_that_fits_eighty_columns(tmp_path):
    for name, scores in (("first", FIRST), ("second", SECOND)):
        made = imp(scores, name)
        type(made)(made.record, tmp_path / name).save()
    arguments = [
        "compare",
        str(tmp_path / "first"),
        str(tmp_path / "second"),
        "--table",
        str(tmp_path / "t.csv"),
    ]
    told = CliRunner().invoke(app, arguments, env={"COLUMNS": "80"})
    assert told.exit_code == 0
    assert "+3.0 (+0.5 to +5.5)" in told.stdout
    assert "paired by seed" in told.stdout
    assert max(map(len, told.stdout.splitlines()[:-1])) <= 80
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 3
