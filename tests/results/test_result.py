"""Results on disk, and the tidy tables of hand-made ones."""

import csv
import json
from pathlib import Path

import pytest

from tests.results.builder import cell, measured, result, score
from tombola.errors import TombolaError, UnknownName
from tombola.evaluation.scores import Score
from tombola.results.differences import estimate_difference
from tombola.results.export import write_table
from tombola.results.result import Result, Study

SCORES = {  # by variant, then seed: clean, out of distribution
    "dense": {1: (0.90, 0.60), 2: (0.92, 0.64), 3: (0.91, 0.62)},
    "imp": {1: (0.90, 0.70), 2: (0.93, 0.71), 3: (0.91, 0.75)},
    "random": {1: (0.80, 0.50), 2: (0.79, 0.52), 3: (0.81, 0.48)},
}


def both(clean, shifted):
    return {"validation": {"accuracy": clean, "mcc": clean - 0.1}, "hans/validation": shifted}


@pytest.fixture
def found(tmp_path: Path) -> Result:
    cells = [
        cell(variant, both(*values), None if variant == "dense" else 0.5, seed)
        for variant, seeds in SCORES.items()
        for seed, values in seeds.items()
    ]
    return result(*cells, folder=tmp_path, name="x")


def row(found, variant, on="validation", metric="accuracy"):
    (only,) = [r for r in found.rows() if (r["variant"], r["on"], r["metric"]) == (variant, on, metric)]
    return only


def test_a_study_is_a_result():
    assert Study is Result


def test_a_result_reads_back_as_it_was_with_its_decisions(found):
    path = found.save()
    again = Result.load(found.folder)
    assert again.record == found.record == Result.load(path).record
    assert again.rows() == found.rows()
    kept = json.loads(path.read_text())
    assert kept["format"] == 2
    assert [one["variant"] for one in kept["matching"]["validation"]] == ["imp", "random"]
    assert kept["matching"]["hans/validation"][0]["strict"] == 0.5
    assert (kept["phases"], kept["transfer"], kept["sharing"]) == ([], None, {})
    assert [file.name for file in found.folder.iterdir()] == ["results.json"]


def test_a_result_that_cannot_be_written_leaves_the_old_one_and_nothing_else(found, monkeypatch):
    before = found.save().read_bytes()

    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space"):
        found.save()
    assert [file.name for file in found.folder.iterdir()] == ["results.json"]
    assert (found.folder / "results.json").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content | {"format": 1}, "has format 1, but this version of Tombola reads format 2"),
        (lambda content: {"cells": []}, "has no format"),
        (lambda content: [], "has no format"),
        (lambda content: content | {"surprise": 1}, "surprise: extra inputs are not permitted"),
        (lambda content: content | {"cells": [{}]}, r"cells\.0\.variant: field required"),
    ],
)
def test_another_format_or_an_unknown_field_is_one_sentence(found, change, message):
    path = found.save()
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(TombolaError, match=message) as refused:
        Result.load(found.folder)
    assert str(path) in str(refused.value)
    assert "run the command that wrote it again" in str(refused.value)


def test_damaged_json_is_one_sentence(found):
    path = found.save()
    path.write_text(path.read_text()[:-20])
    with pytest.raises(TombolaError, match=r"results\.json is damaged and not valid JSON .* run the command"):
        Result.load(found.folder)


def test_a_folder_without_results_is_told_so(tmp_path):
    with pytest.raises(TombolaError, match="is not the folder of a run"):
        Result.load(tmp_path)


def test_a_row_has_all_that_is_known_of_a_variant_on_a_data_set(found):
    imp = row(found, "imp")
    assert (imp["seeds"], imp["sparsity"], imp["draw.sparsity"]) == (3, 0.5, 0.5)
    assert imp["mean"] == pytest.approx((0.90 + 0.93 + 0.91) / 3)
    assert imp["against"] == "dense"
    assert imp["difference"] == pytest.approx(0.01 / 3)
    assert imp["matching"] == "strict"
    assert (imp["condition"], row(found, "imp", "hans/validation")["condition"]) == (
        "clean",
        "out of distribution",
    )
    assert row(found, "random")["matching"] == "below"
    assert row(found, "dense")["matching"] is None
    assert row(found, "imp", metric="mcc")["p"] is None
    assert len(found.rows()) == 3 * 3


def test_a_result_without_cells_has_no_rows():
    empty = result()
    assert empty.rows() == empty.observations() == empty.frontier() == []


def test_a_group_that_some_seed_lacks_has_no_row():
    cells = [
        cell("imp", {"validation": {"accuracy": 0.8, "accuracy/rare": 0.5}}, 0.5, seed=0),
        cell("imp", {"validation": {"accuracy": 0.9}}, 0.5, seed=1),
    ]
    assert [row["metric"] for row in result(*cells).rows()] == ["accuracy"]


def test_rows_tables_and_summaries_have_one_interval(found):
    for summary in found.summaries():
        for on, estimate in summary.scores.items():
            own = row(found, summary.variant, on)
            assert (own["mean"], own["std"], own["low"], own["high"]) == (
                estimate.mean, estimate.std, estimate.low, estimate.high,
            )  # fmt: skip


def test_every_two_variants_are_compared_seed_by_seed(found):
    pairs = {(d.first["variant"], d.second["variant"]): d for d in found.differences("validation")}
    assert set(pairs) == {("dense", "imp"), ("dense", "random"), ("imp", "random")}
    one = pairs["dense", "random"]
    assert one.mean == pytest.approx((0.10 + 0.13 + 0.10) / 3)
    assert one.flips == 2 / 8
    assert one.t < pairs["imp", "random"].t < pairs["dense", "imp"].t
    assert one.holm == pytest.approx(3 * one.t)  # the smallest of three
    assert pairs["imp", "random"].holm == pytest.approx(2 * pairs["imp", "random"].t)
    with pytest.raises(UnknownName, match="validation"):
        found.differences("validaton")


def test_equal_differences_of_all_seeds_prove_nothing():
    cells = [cell("dense", 0.80, seed=0), cell("dense", 0.90, seed=1)]
    found = result(*cells, cell("imp", 0.83, 0.5, seed=0), cell("imp", 0.93, 0.5, seed=1))
    (one,) = found.differences("validation")
    assert (one.t, one.holm, one.flips) == (None, None, 1 / 2)
    assert row(found, "imp")["p"] is None
    change = estimate_difference(*found.summaries(), "validation").estimate
    assert change.low < 0 < change.high  # the interval of one seed, not one without width


def test_predictions_that_are_not_in_the_store_are_named(found, tmp_path):
    one = found.differences("validation", tmp_path / "empty")[0]
    assert one.mcnemar is None
    assert "no McNemar test" in one.note
    assert found.cells[0].stages.evaluations["validation"] in one.note


def test_the_frontier_weighs_sparsity_clean_and_shifted(found):
    assert [row["point"]["variant"] for row in found.frontier()] == ["imp"]
    assert [row["point"]["variant"] for row in found.frontier(["clean"])] == ["imp"]
    assert {row["point"]["variant"] for row in found.frontier(["sparsity"])} == {"imp", "random"}
    with pytest.raises(TombolaError, match="under attack"):
        found.frontier(["under attack"])
    with pytest.raises(UnknownName, match="speed-up"):
        found.frontier(["speed"])


def test_speed_on_the_frontier_is_the_ratio_and_a_dense_model_is_as_fast_as_itself():
    found = result(
        cell("dense", 0.9, measured=measured(milliseconds=5)),
        cell("slow machine", 0.8, 0.5, measured=measured(2.0, milliseconds=100)),
        cell("fast machine", 0.7, 0.5, measured=measured(1.5, milliseconds=1)),
    )
    assert found.frontier(["clean", "speed-up"]) == [
        {"point": {"variant": "dense"}, "clean": 0.9, "speed-up": 1.0},
        {"point": {"variant": "slow machine", "draw.sparsity": 0.5}, "clean": 0.8, "speed-up": 2.0},
    ]
    assert [one["speedup"] for one in found.rows()] == [None, 2.0, 1.5]


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
def test_tables_are_written_in_three_formats(found, tmp_path, suffix):
    path = write_table(found.rows(), tmp_path / f"out{suffix}")
    if suffix == ".csv":
        with open(path) as file:
            read = [(r["variant"], r["on"], float(r["mean"])) for r in csv.DictReader(file)]
    elif suffix == ".json":
        read = [(r["variant"], r["on"], r["mean"]) for r in json.loads(path.read_text())]
    else:
        pandas = pytest.importorskip("pandas")
        read = [(r["variant"], r["on"], r["mean"]) for r in pandas.read_parquet(path).to_dict("records")]
    assert read == [(r["variant"], r["on"], pytest.approx(r["mean"])) for r in found.rows()]


def test_an_axis_of_numbers_and_words_is_text_in_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    rows = [{"layers": 4, "mean": 1}, {"layers": "most", "mean": 0.5}, {"layers": None, "mean": 0.1}]
    read = pandas.read_parquet(write_table(rows, tmp_path / "out.parquet"))
    assert read["layers"].tolist()[:2] == ["4", "most"]
    assert read["layers"].isna().tolist() == [False, False, True]
    assert read["mean"].tolist() == [1.0, 0.5, 0.1]


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(TombolaError, match=r"\.csv, \.json or \.parquet"):
        write_table([], tmp_path / "out.xls")


def test_the_frame_has_the_rows(found):
    pytest.importorskip("pandas")
    frame = found.frame()
    assert len(frame) == len(found.rows())
    assert frame.groupby("variant")["mean"].max()["imp"] == pytest.approx(0.9133, abs=1e-4)
    assert len(found.frame(found.observations())) == len(found.observations()) == 9 * 3


def test_conditions_are_the_task_s_own_data_other_data_and_attacks():
    on = ["validation", "reviews/test", "validation+anti", "reviews_product/test", "hans", "other.yaml"]
    found = result(cell("dense", dict.fromkeys(on, 0.9), under={"textfooler": 0.2}))
    assert [found.condition(one) for one in on] == ["clean"] * 2 + ["out of distribution"] * 4
    assert found.condition("textfooler") == "under attack"
    assert found.datasets == on
    assert found.targets == [*on, "textfooler"]


def test_latex_has_a_line_for_each_row_and_no_bare_special_characters():
    scores = {
        "validation": {"pearson": Score(-0.347, 0.02, 50, "Fisher z")},
        "reviews_product/test": score(0.824),
    }
    imp = cell("imp", scores, 0.5, recipe={"search": {"method": "iterative"}}, **{"search.step": 0.1})
    text = result(cell("a_b & 50%", scores), imp).to_latex()
    assert text.splitlines() == [
        r"\begin{tabular}{llrrr}",
        r"\toprule",
        r"variant & step & sparsity & validation & product \\",
        r"\midrule",
        r"a\_b \& 50\% &  & dense & $-$0.347 $\pm$ 0.020 & 82.4 \% $\pm$ 3.8 \\",
        r"imp & 0.1 & 50 \% & $-$0.347 $\pm$ 0.020 & 82.4 \% $\pm$ 3.8 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_a_result_shows_its_scores_in_a_session(found):
    shown = repr(found).splitlines()
    assert shown[0] == f"Result 'x': 3 rows, 3 seeds ({found.folder})"
    assert shown[2] == "  imp · 50 % sparse: validation 91.3 % ± 1.5, hans/validation 72.0 % ± 2.6"


def test_every_flipped_bit_of_a_result_is_named(tmp_path):
    file = result(cell("dense", 0.9), cell("ticket", 0.8), folder=tmp_path).save()
    whole = file.read_bytes()
    for place in range(0, len(whole), 11):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(TombolaError, match="run the command that wrote it again"):
            Result.load(tmp_path)
    file.write_bytes(whole)
    assert Result.load(tmp_path).record.checksum == ""
