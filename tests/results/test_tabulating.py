"""Tidy tables of a hand-made result."""

import csv
import json
from pathlib import Path

import pytest

from tombola.errors import TombolaError, UnknownName
from tombola.pipeline.studying import Study
from tombola.results.export import write_table

MASK = {"weight_sparsity": 0.5, "granularity": "weight", "parameters": 100, "total_sparsity": 0.4}
SCORES = {  # by variant, then seed: clean, out of distribution
    "dense": {1: (0.90, 0.60), 2: (0.92, 0.64), 3: (0.91, 0.62)},
    "imp": {1: (0.90, 0.70), 2: (0.93, 0.71), 3: (0.91, 0.75)},
    "random": {1: (0.80, 0.50), 2: (0.79, 0.52), 3: (0.81, 0.48)},
}


def cell(variant, seed, clean, shifted):
    def score(value):
        return {"value": value, "stderr": 0.01, "n": 100, "method": "binomial"}

    mask = None if variant == "dense" else MASK
    return {
        "variant": variant,
        "axes": {"seed": seed} if variant == "dense" else {"draw.sparsity": 0.5, "seed": seed},
        "seed": seed,
        "label": f"{variant}-{seed}",
        "scores": {
            "validation": {"accuracy": score(clean), "mcc": score(clean - 0.1)},
            "hans/validation": {"accuracy": score(shifted)},
        },
        "mask": mask,
        "stages": {"model": "m", "mask": "k"},
        "ticket": None,
    }


@pytest.fixture
def found(tmp_path: Path) -> Study:
    cells = [cell(v, seed, *both) for v, seeds in SCORES.items() for seed, both in seeds.items()]
    return Study({"name": "x", "cells": cells}, tmp_path)


def row(study, variant, on="validation", metric="accuracy"):
    (only,) = [r for r in study.rows() if (r["variant"], r["on"], r["metric"]) == (variant, on, metric)]
    return only


def test_a_row_has_all_that_is_known_of_a_variant_on_a_data_set(found):
    imp = row(found, "imp")
    assert (imp["seeds"], imp["sparsity"], imp["draw.sparsity"]) == (3, 0.5, 0.5)
    assert imp["mean"] == pytest.approx((0.90 + 0.93 + 0.91) / 3)
    assert imp["against"] == "dense"
    assert imp["difference"] == pytest.approx(0.01 / 3)
    assert imp["matching"] == "strict"
    assert (imp["family"], row(found, "imp", "hans/validation")["family"]) == ("clean", "out of distribution")
    assert row(found, "random")["matching"] == "below"
    assert row(found, "dense")["matching"] is None
    assert row(found, "imp", metric="mcc")["p"] is None
    assert len(found.rows()) == 3 * 3


def test_every_two_variants_are_compared_seed_by_seed(found):
    pairs = {(d.first["variant"], d.second["variant"]): d for d in found.differences("validation")}
    assert set(pairs) == {("dense", "imp"), ("dense", "random"), ("imp", "random")}
    one = pairs["dense", "random"]
    assert one.mean == pytest.approx((0.10 + 0.13 + 0.10) / 3)
    assert one.flips == 2 / 8
    assert one.t < 0.05
    assert one.holm == pytest.approx(2 * one.t) or one.holm == pytest.approx(3 * one.t)
    assert one.mcnemar is None
    with pytest.raises(UnknownName, match="validation"):
        found.differences("validaton")


def test_the_frontier_weighs_sparsity_clean_and_shifted(found):
    assert [row["point"]["variant"] for row in found.frontier()] == ["imp"]
    assert [row["point"]["variant"] for row in found.frontier(["clean"])] == ["imp"]
    assert {row["point"]["variant"] for row in found.frontier(["sparsity"])} == {"imp", "random"}
    with pytest.raises(TombolaError, match="under attack"):
        found.frontier(["under attack"])


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


def test_another_format_is_refused(tmp_path):
    with pytest.raises(TombolaError, match=r"\.csv, \.json or \.parquet"):
        write_table([], tmp_path / "out.xls")


def test_the_frame_has_the_rows(found):
    pytest.importorskip("pandas")
    frame = found.frame()
    assert len(frame) == len(found.rows())
    assert frame.groupby("variant")["mean"].max()["imp"] == pytest.approx(0.9133, abs=1e-4)
    assert len(found.observations()) == 9 * 3
