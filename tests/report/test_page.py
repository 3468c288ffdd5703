"""What stands on the page, as the data that its script draws; what the browser makes of it is in test_browser."""

import base64
import hashlib
import json
import re

import pytest

from tests.report.rich import HOSTILE, SPARSITIES, rich_result
from tests.test_results import cell
from tombola.errors import TombolaError
from tombola.report import report, write_report
from tombola.report.maps import _endings
from tombola.results.result import Result


def content_of(page):
    return json.loads(
        re.search(r'<script type="application/json" id="content">(.*?)</script>', page, re.S)[1]
    )


def section(content, title):
    return next(one for one in content["sections"] if one["title"] == title)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rich")
    rich_result(folder, folder / "store").save()
    return folder


@pytest.fixture(scope="module")
def page(folder):
    return report([folder], folder / "report.html", store=folder / "store").read_text()


@pytest.fixture(scope="module")
def content(page):
    return content_of(page)


def simple(tmp_path, *cells, **content):
    whole = {"name": "r", "about": "", "recipe": {}, "versions": {}, "cells": list(cells), **content}
    for one in whole["cells"]:
        one.update(precision="fp32", ticket=None, stages={})
    return Result(whole, tmp_path)


def test_every_section_that_has_data_is_there_in_the_order_that_people_read(content):
    assert [one["title"] for one in content["sections"]] == [
        "Scores",
        "Score against sparsity",
        "Matching tickets",
        "Phase transition",
        "Trade-offs",
        "Robustness over epochs",
        "Transfer",
        "Overlap",
        "Where the tickets are sparse",
        "What selective training froze",
        "Attacked sentences",
        "Recipe and versions",
    ]


def test_sections_without_data_are_left_out(tmp_path):
    text = write_report(simple(tmp_path, cell("dense", 0.9))).read_text()
    assert [one["title"] for one in content_of(text)["sections"]] == ["Scores", "Recipe and versions"]


def test_the_headline_has_means_intervals_and_the_best_of_each_column(content):
    (table,) = section(content, "Scores")["parts"]
    names = [column["name"] for column in table["columns"]]
    groups = [column["group"] for column in table["columns"]]
    assert names[:2] == ["variant", "sparsity"]
    assert names[-1] == "parameters left"
    assert groups[2:] == ["clean", "clean", "out of distribution", "under attack", "size"]
    rows = {(row["values"][0], row["values"][1]): row for row in table["rows"]}
    dense, best = rows["dense", 0.0]["values"], rows["winning", 0.2 * 0.9]["values"]
    assert dense[-1] == 22_713_986
    assert best[-1] == round(22_713_986 * 0.9)
    assert dense[2]["value"] == pytest.approx(0.81)
    assert dense[2]["low"] == pytest.approx(0.81 - 4.302653 * 0.004 / 3**0.5, abs=1e-6)
    assert best[2]["best"]
    assert not dense[2]["best"]


def test_a_curve_has_a_level_for_the_dense_model_and_a_ring_on_the_matching_ticket(content):
    chart = section(content, "Score against sparsity")["parts"][0]
    series = {one["name"]: one for one in chart["series"]}
    assert series["dense"]["level"]
    assert [point["x"] for point in series["winning"]["points"]] == [0.9 * share for share in SPARSITIES]
    assert [point["ring"] for point in series["winning"]["points"]] == ["matches", "", ""]
    assert not any(point["ring"] for point in series["random"]["points"])


def test_the_phases_are_stretches_of_the_axis_and_the_super_ticket_is_ringed(content):
    (chart,) = section(content, "Phase transition")["parts"]
    assert [name for name, _, _ in chart["spans"]] == ["I", "II"]
    assert chart["spans"][0][2] == chart["spans"][1][1] == pytest.approx(0.15)
    winning = next(one for one in chart["series"] if one["name"] == "winning")
    assert [point["ring"] for point in winning["points"]] == ["super ticket", "", ""]


def test_the_frontier_holds_exactly_the_models_that_none_beats_in_both(content):
    chart = next(one for one in section(content, "Trade-offs")["parts"] if one["x"] == "textfooler")
    for spot in chart["spots"]:
        beaten = any(
            other["x"] >= spot["x"] and other["y"] >= spot["y"] and other != spot for other in chart["spots"]
        )
        assert spot["front"] != beaten
    assert sum(spot["front"] for spot in chart["spots"]) == 2


def test_robustness_over_epochs_is_a_line_for_each_model_that_has_it(content):
    (chart,) = section(content, "Robustness over epochs")["parts"]
    assert [one["name"] for one in chart["series"]] == [
        "dense",
        "winning · 18%",
        "random · 18%",
        "losing · 18%",
    ]
    assert [point["x"] for point in chart["series"][0]["points"]] == [1, 2, 3]


def test_maps_hold_the_masks_own_shares_and_the_frozen_shares(content):
    maps = section(content, "Where the tickets are sparse")["parts"]
    assert len(maps) == 9
    removed = [share for row in maps[0]["values"] for share in row]
    assert sum(removed) / len(removed) == pytest.approx(0.25)  # 2 of 8 heads, four in each layer
    (frozen,) = section(content, "What selective training froze")["parts"]
    assert frozen["values"] == [[0.0, 0.0], [0.25, 0.25], [0.5, 0.5]]


def test_attacked_sentences_mark_the_changed_words(content):
    part = section(content, "Attacked sentences")["parts"][0]
    assert part["name"] == "textfooler on dense"
    (sentence,) = part["sentences"]
    assert [piece for piece, changed in sentence["old"][0][1] if changed] == ["lovely"]
    assert [piece for piece, changed in sentence["new"][0][1] if changed] == [f"pleasant{HOSTILE}"]


def test_nothing_from_data_is_markup_and_only_the_page_s_own_script_may_run(page):
    assert HOSTILE not in page
    without = re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    assert "<img" not in without
    assert "\\u003cimg" in without
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1].replace(
        "&#39;", "'"
    )
    assert "default-src 'none'" in policy
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert re.search(r"<(script|link|img|iframe)[^>]* (src|href)=", without) is None


def test_several_runs_share_a_page_and_are_compared_each_with_its_own_dense_model(tmp_path):
    for name, dense in (("one", 0.9), ("two", 0.6)):
        result = simple(tmp_path / name, cell("dense", dense), cell("imp", 0.7, 0.5), name=name)
        result.save()
    content = content_of(report([tmp_path / "one", tmp_path / "two"], tmp_path / "both.html").read_text())
    assert content["facets"]["run"] == ["one", "two"]
    (table,) = section(content, "Matching tickets")["parts"]
    assert [row["values"] for row in table["rows"]] == [["imp", "one", None, None], ["imp", "two", 0.5, 0.5]]


def test_runs_of_one_name_are_called_by_their_folders(tmp_path):
    for folder in ("first", "second"):
        simple(tmp_path / folder, cell("dense", 0.9), name="same").save()
    content = content_of(
        report([tmp_path / "first", tmp_path / "second"], tmp_path / "both.html").read_text()
    )
    assert content["facets"]["run"] == ["first", "second"]


def test_an_attack_s_folder_makes_a_page_by_itself(folder, tmp_path):
    content = content_of(report([folder / "store" / "attack" / "a1"], tmp_path / "attack.html").read_text())
    assert [one["title"] for one in content["sections"]] == ["Attacked sentences"]


def test_a_folder_that_holds_neither_is_told_what_does(tmp_path):
    with pytest.raises(TombolaError, match="give the folder that `tombola run`"):
        report([tmp_path], tmp_path / "report.html")


def test_what_was_measured_of_shipped_models_stands_in_the_headline(tmp_path):
    def sizes(parameters, seconds):
        return {
            "parameters": parameters,
            "bytes": 4 * parameters,
            "flops": 1,
            "length": 128,
            "latency": {"1": seconds, "32": 1.0},
        }

    dense, heads = cell("dense", 0.9), cell("heads", 0.8, 0.5)
    dense["measured"] = {"dense": sizes(1_000_000, 0.02), "ticket": sizes(1_000_000, 0.02)}
    heads["measured"] = {"dense": sizes(1_000_000, 0.02), "ticket": sizes(600_000, 0.012)}
    result = simple(tmp_path, dense, heads, cell("weights", 0.8, 0.5))
    (table,) = section(content_of(write_report(result).read_text()), "Scores")["parts"]
    names = [column["name"] for column in table["columns"]]
    at = names.index("parameters shipped")
    assert names[at : at + 3] == ["parameters shipped", "MB on disk", "latency"]
    shipped = [row["values"][at : at + 3] for row in table["rows"]]
    assert shipped == [
        [1_000_000, 4.0, pytest.approx(20)],
        [600_000, 2.4, pytest.approx(12)],
        [None, None, None],
    ]


def test_a_study_of_one_recipe_shows_its_phases_too(folder, tmp_path):
    result = Result.load(folder)
    study = {**result.content, "recipe": {"name": "rich", "recipes": [result.content["recipe"]]}}
    text = write_report(Result(study, tmp_path)).read_text()
    assert section(content_of(text), "Phase transition")["parts"]


def test_a_study_of_which_nothing_was_finished_shows_what_failed(tmp_path):
    failure = {
        "stage": "train/abc",
        "label": "fine-tune",
        "reason": "out of memory",
        "log": "x.log",
        "cells": ["a", "b"],
    }
    content = content_of(write_report(simple(tmp_path, failures=[failure])).read_text())
    assert [one["title"] for one in content["sections"]] == ["What failed", "Recipe and versions"]
    (table,) = section(content, "What failed")["parts"]
    assert table["rows"][0]["values"] == ["train/abc", "fine-tune", "out of memory", "x.log", 2]


def test_tensors_of_a_map_are_named_by_their_shortest_telling_end():
    names = ["attention.self.query", "attention.output.dense", "output.dense", "intermediate.dense"]
    assert _endings(names) == {
        "attention.self.query": "query",
        "attention.output.dense": "attention.output.dense",
        "output.dense": "output.dense",
        "intermediate.dense": "intermediate.dense",
    }
