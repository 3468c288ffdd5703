"""The page: what stands in it, and that data stays data."""

from tests.test_results import cell
from tombola.report import write_report
from tombola.report.heatmap import heatmap
from tombola.results import Result

HOSTILE = "<script>alert(1)</script>"


def page(tmp_path, *cells, **content):
    whole = {"name": "r", "about": "", "recipe": {}, "versions": {}, "cells": list(cells), **content}
    for one in whole["cells"]:
        one["precision"] = "fp32"
    return write_report(Result(whole, tmp_path)).read_text()


def test_it_shows_every_row_and_a_curve_for_several_sparsities(tmp_path):
    text = page(tmp_path, cell("dense", 0.9), cell("imp", 0.85, 0.3), cell("imp", 0.8, 0.5))
    assert "90.0" in text
    assert "85.0" in text
    assert text.count("<polyline") == 2
    assert "http" not in text.replace("http-equiv", "")


def test_hostile_names_stay_text(tmp_path):
    text = page(
        tmp_path, cell(HOSTILE, 0.9), cell(HOSTILE + "2", 0.8, 0.5), name=HOSTILE, recipe={"model": HOSTILE}
    )
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text


def test_a_heat_map_escapes_shades_and_signs():
    text = heatmap([HOSTILE], ["a", "b"], [[0.5, -0.25]], signed=True, digits=1)
    assert HOSTILE not in text
    assert "+50.0" in text
    assert "-25.0" in text
    assert "var(--cool) 80%" in text
    assert "var(--warm) 40%" in text
