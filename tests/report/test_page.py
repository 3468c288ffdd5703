"""What stands on the page, as the data that its script draws; what the browser makes of it is in test_browser."""

import base64
import hashlib
import json
import re

import pytest

from tests.report.rich import ATTACK, HOSTILE, SPARSITIES, keep_attack, rich_result, transferred
from tests.results.builder import attacked, cell, measured, result
from tombola.errors import TombolaError
from tombola.evaluation.scores import Score
from tombola.pipeline.sharing import ALONE, RANDOM, WITH, WITHOUT
from tombola.recipe.claims import Claim
from tombola.report import report, write_report
from tombola.report.maps import _endings
from tombola.results.record import FailureRecord
from tombola.store.manifest import write_manifest
from tombola.store.store import Store
from tombola.training.log import TrainLog


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


def shown(tmp_path, *cells, store=None, **fields):
    """The content of the page of a result of these cells."""
    return content_of(write_report(result(*cells, folder=tmp_path, **fields), store=store).read_text())


def test_every_section_that_has_data_is_there_in_the_order_that_people_read(content):
    assert [one["title"] for one in content["sections"]] == [
        "At a glance",
        "Scores",
        "More scores against sparsity",
        "Matching tickets",
        "Phase transition",
        "Trade-offs",
        "Accuracy by changed words",
        "Robustness over epochs",
        "Overlap",
        "Sparsity by layer",
        "Frozen tensors",
        "Attacked sentences",
        "Recipe and versions",
    ]


def test_sections_without_data_are_left_out(tmp_path):
    content = shown(tmp_path, cell("dense", 0.9))
    assert [one["title"] for one in content["sections"]] == ["Scores", "Recipe and versions"]


def test_the_headline_has_means_intervals_and_the_best_of_each_column(content):
    (table,) = section(content, "Scores")["parts"]
    names = [column["name"] for column in table["columns"]]
    groups = [column["group"] for column in table["columns"]]
    assert names[:2] == ["variant", "sparsity (prunable weights)"]
    assert names[-1] == "parameters left (whole model)"
    assert groups[2:] == ["clean", "clean", "out of distribution", "under attack", "size"]
    rows = {(row["values"][0], row["values"][1]): row for row in table["rows"]}
    dense, best = rows["dense", 0.0]["values"], rows["winning", 0.2 * 0.9]["values"]
    assert dense[-1] == 22_713_986
    assert best[-1] == round(22_713_986 * 0.9)
    assert dense[2]["value"] == pytest.approx(0.81)
    assert dense[2]["low"] == pytest.approx(0.81 - 4.302653 * 0.004 / 3**0.5, abs=1e-6)
    assert best[2]["best"]
    assert not dense[2]["best"]
    assert "standard deviation" in section(content, "Matching tickets")["note"]


def test_the_highest_score_is_marked_only_where_no_other_interval_overlaps(tmp_path):
    def best(*values):
        content = shown(tmp_path, *(cell(str(value), value) for value in values))
        return [row["values"][2]["best"] for row in section(content, "Scores")["parts"][0]["rows"]]

    assert best(0.9, 0.5, 0.6) == [True, False, False]
    assert best(0.9, 0.89, 0.6) == [False, False, False]
    assert best(0.9) == [False]


def test_a_correlation_is_a_number_in_the_table_and_on_the_axis(tmp_path):
    def scored(value):
        return {"validation": {"pearson": Score(value, 0.02, 50, "Fisher z")}}

    tickets = [cell("imp", scored(-0.4), sparsity) for sparsity in (0.5, 0.6)]
    content = shown(tmp_path, cell("dense", scored(-0.347)), *tickets)
    (table,) = section(content, "Scores")["parts"]
    assert table["columns"][2]["format"] == table["rows"][0]["values"][2]["format"] == "correlation"
    assert section(content, "At a glance")["parts"][0]["y_format"] == "correlation"


def test_doubts_stand_at_the_top_and_nothing_matches_a_model_that_has_not_learned(tmp_path):
    constants = {"validation": 0.5}
    cells = [cell("imp", 0.5, sparsity, constants=constants) for sparsity in (0.5, 0.6)]
    page = write_report(result(cell("dense", 0.5, constants=constants), *cells, folder=tmp_path)).read_text()
    content, above = content_of(page), page.partition('id="sections"')[0]
    assert "<li>dense has not learned the task: 50.0\u00a0% on validation" in above
    assert '<p class="lead">The dense model has not learned the task, so there is nothing to match' in above
    (table,) = section(content, "Matching tickets")["parts"]
    assert table["rows"][0]["values"][1:] == [
        "imp",
        None,
        None,
        "the dense model has not learned the task, so there is nothing to match",
    ]
    chart = section(content, "At a glance")["parts"][0]
    assert not any(point["ring"] for series in chart["series"] for point in series["points"])


def test_more_than_a_few_remarks_unfold(tmp_path):
    notes = [f"remark {number}" for number in range(5)]
    page = write_report(result(cell("dense", 0.9, notes=notes), folder=tmp_path)).read_text()
    assert page.index("remark 2") < page.index("2 more remarks") < page.index("remark 3")


def test_the_first_screen_has_the_sentence_and_what_it_rests_on(tmp_path):
    cells = [cell("dense", 0.9, None, 7), cell("imp", 0.9, 0.5, 7)]
    machine = {"processor": "A processor", "cores": 2, "device": "cpu"}
    made = result(*cells, folder=tmp_path, machine=machine, date="2026-11-17")
    above = write_report(made).read_text().partition('id="sections"')[0]
    assert "The ticket imp with 50\u00a0% of the prunable weights removed matches the dense model" in above
    for fact in ("100 examples of validation", "seed 7", "fp32", "A processor, 2 cores, cpu", "2026-11-17"):
        assert f"<span>{fact}</span>" in above


def test_a_chart_of_one_size_is_no_line_but_intervals_of_every_model(tmp_path):
    content = shown(tmp_path, cell("dense", 0.9), cell("imp", 0.8, 0.5), cell("random", 0.7, 0.5))
    titles = [one["title"] for one in content["sections"]]
    assert "More scores against sparsity" not in titles
    (chart,) = section(content, "At a glance")["parts"]
    assert chart["kind"] == "intervals"
    assert [row["name"] for row in chart["rows"]] == ["dense", "imp 50 %", "random 50 %"]
    assert all(row["low"] < row["value"] < row["high"] for row in chart["rows"])


def test_a_single_size_has_no_phase_transition_and_a_single_epoch_no_curve(tmp_path):
    recipe = {"search": {"method": "importance", "order": "winning"}}
    one = cell("winning", 0.8, 0.5, recipe=recipe, curves={"textfooler": [attacked(0.4)]})
    titles = [part["title"] for part in shown(tmp_path, cell("dense", 0.9), one)["sections"]]
    assert "Phase transition" not in titles
    assert "Robustness over epochs" not in titles


def test_every_ring_of_a_chart_has_its_row_in_the_table_of_matches(content):
    (table,) = section(content, "Matching tickets")["parts"]
    stated = {(row["values"][0], row["values"][1]): row["values"][2] for row in table["rows"]}
    charts = [
        *section(content, "At a glance")["parts"],
        *section(content, "More scores against sparsity")["parts"],
    ]
    assert len(charts) == 4
    for chart in charts:
        for series in (one for one in chart["series"] if not one["level"]):
            ringed = [point["x"] for point in series["points"] if point["ring"]]
            assert ringed == [stated[chart["name"], series["name"]]] if ringed else True
            assert bool(ringed) == (stated[chart["name"], series["name"]] is not None)


def test_one_seed_has_no_standard_deviation(tmp_path):
    content = shown(tmp_path, cell("dense", 0.9), cell("imp", 0.9, 0.5))
    assert "deviation" not in json.dumps(content)
    assert "within one standard error" in json.dumps(content)


def test_a_curve_has_a_level_for_the_dense_model_and_a_ring_on_the_matching_ticket(content):
    chart = section(content, "At a glance")["parts"][0]
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


def test_robustness_is_a_line_of_every_variant_against_the_changed_words(content):
    found = section(content, "Accuracy by changed words")
    assert "upper bounds" in found["note"]
    (chart,) = found["parts"]
    assert chart["name"] == "textfooler"
    assert chart["ticks"] == ["0", "1", "2", "3", "4", "5", "10", "20", "∞"]
    dense = next(one for one in chart["series"] if one["name"] == "dense")
    under = next(
        one
        for one in section(content, "More scores against sparsity")["parts"]
        if one["name"] == "textfooler"
    )
    level = next(one for one in under["series"] if one["name"] == "dense")["points"][0]["y"]
    values = [point["y"] for point in dense["points"]]
    assert values[0] == pytest.approx(0.9)
    assert values[-1] == pytest.approx(level, abs=0.006)
    assert values[1:6] == pytest.approx([(values[0] + values[-1]) / 2] * 5, abs=0.006)
    assert [one["facets"]["variant"] for one in chart["series"]] == ["dense", "winning", "random", "losing"]
    assert [one["name"] for one in chart["series"]][1] == "winning 36 %"


def test_of_several_tickets_the_sparsest_that_matches_under_attack_has_the_line(tmp_path):
    cells = [
        cell("dense", 0.9, under={"textfooler": 0.4}),
        *(
            cell("imp", 0.9, size, under={"textfooler": under})
            for size, under in ((0.5, 0.5), (0.7, 0.45), (0.9, 0.1))
        ),
        cell("random", 0.9, 0.5, under={"textfooler": 0.1}),
    ]
    (chart,) = section(shown(tmp_path, *cells), "Accuracy by changed words")["parts"]
    assert [(one["name"], one["points"][-1]["y"]) for one in chart["series"]] == [
        ("dense", 0.4),
        ("imp 70 %", 0.45),
        ("random", 0.1),
    ]


def test_the_frontier_holds_exactly_the_models_that_none_beats_in_both(content):
    chart = next(one for one in section(content, "Trade-offs")["parts"] if one["x"] == "textfooler")
    for spot in chart["spots"]:
        beaten = any(
            other["x"] >= spot["x"] and other["y"] >= spot["y"] and other != spot for other in chart["spots"]
        )
        assert spot["front"] != beaten
    assert sum(spot["front"] for spot in chart["spots"]) == 2


def test_the_line_through_the_front_has_no_corner_that_is_better_than_its_models(tmp_path):
    cells = [
        cell(
            name,
            {"validation": value, "rte/validation": {"perplexity": Score(other, 0.1, 90, "of the mean")}},
            size,
        )
        for name, value, other, size in (
            ("dense", 0.9, 30.0, None),
            ("a", 0.8, 20.0, 0.5),
            ("b", 0.7, 40.0, 0.6),
        )
    ]
    (lower,) = section(shown(tmp_path, *cells), "Trade-offs")["parts"]
    cells = [cell("dense", 0.9), cell("a", 0.8, 0.5), cell("b", 0.7, 0.6)]
    (higher,) = section(shown(tmp_path, *cells), "Trade-offs")["parts"]
    assert (lower["x"], lower["turn"]) == ("rte/validation", "end")
    assert (higher["x"], higher["turn"]) == ("weights removed", "start")


def test_robustness_over_epochs_is_a_line_for_each_model_that_has_it(content):
    (chart,) = section(content, "Robustness over epochs")["parts"]
    assert [one["name"] for one in chart["series"]] == [
        "dense",
        "winning · 18 %",
        "random · 18 %",
        "losing · 18 %",
    ]
    assert [point["x"] for point in chart["series"][0]["points"]] == [1, 2, 3]


def test_a_transfer_is_a_map_with_gaps_where_cells_are_missing(tmp_path):
    content = content_of(write_report(transferred(tmp_path)).read_text())
    (matrix,) = section(content, "Transfer")["parts"]
    assert (matrix["rows"], matrix["columns"]) == (
        ["sst2, sparsity 0.5", f"{HOSTILE}, sparsity 0.5"],
        ["sst2", "rte"],
    )
    assert matrix["values"] == [[pytest.approx(0.01), pytest.approx(-0.05)], [pytest.approx(-0.2), None]]


def test_maps_hold_the_masks_own_shares_and_the_frozen_shares(content):
    maps = section(content, "Sparsity by layer")["parts"]
    assert len(maps) == 9
    removed = [share for row in maps[0]["values"] for share in row]
    assert sum(removed) / len(removed) == pytest.approx(0.25)  # 2 of 8 heads, four in each layer
    (frozen,) = section(content, "Frozen tensors")["parts"]
    assert frozen["values"] == [[0.0, 0.0], [0.25, 0.25], [0.5, 0.5]]


def test_attacked_sentences_mark_the_changed_words(content):
    part = section(content, "Attacked sentences")["parts"][0]
    assert part["name"] == "textfooler on dense"
    (sentence,) = part["sentences"]
    assert [piece for piece, changed in sentence["old"][0][1] if changed] == ["lovely"]
    assert [piece for piece, changed in sentence["new"][0][1] if changed] == [f"pleasant{HOSTILE}"]


def test_attacks_that_are_no_longer_in_the_store_are_named(tmp_path):
    attacked = cell("dense", 0.9, under={"textfooler": 0.2})
    content = shown(tmp_path, attacked, store=tmp_path / "store")
    assert section(content, "Attacked sentences")["parts"] == []
    assert section(content, "Attacked sentences")["remarks"] == [
        "The texts of textfooler on dense are not shown: they are not in the store."
    ]


def test_attacked_sentences_come_out_of_a_store_far_away(tmp_path, monkeypatch):
    monkeypatch.setenv("TOMBOLA_CACHE", str(tmp_path / "cache"))
    keep_attack(tmp_path / "near")
    store = Store(f"memory://{tmp_path.name}")
    store.remote.push(ATTACK, tmp_path / "near" / ATTACK)
    one = cell("dense", 0.9, under={"textfooler": 0.2})
    one = one.model_copy(update={"stages": one.stages.model_copy(update={"attacks": {"textfooler": ATTACK}})})
    content = shown(tmp_path, one, store=store)
    assert section(content, "Attacked sentences")["remarks"] == []
    assert section(content, "Attacked sentences")["parts"][0]["name"] == "textfooler on dense"


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
        result(cell("dense", dense), cell("imp", 0.7, 0.5), folder=tmp_path / name, name=name).save()
    content = content_of(report([tmp_path / "one", tmp_path / "two"], tmp_path / "both.html").read_text())
    assert content["facets"]["run"] == ["one", "two"]
    (table,) = section(content, "Matching tickets")["parts"]
    assert [row["values"] for row in table["rows"]] == [
        ["validation", "imp", "one", None, None],
        ["validation", "imp", "two", 0.5, 0.5],
    ]


def test_several_runs_have_a_column_each_and_one_for_the_difference(tmp_path):
    for name, shift in (("one", 0.0), ("two", 0.05)):
        cells = [cell("dense", 0.8 + shift + 0.01 * seed * (1 + shift), None, seed) for seed in (1, 2)]
        result(*cells, cell("imp", 0.7, 0.5, 1), folder=tmp_path / name, name=name).save()
    content = content_of(report([tmp_path / "one", tmp_path / "two"], tmp_path / "both.html").read_text())
    (table,) = section(content, "Runs side by side")["parts"]
    assert [column["name"] for column in table["columns"]] == ["model", "one", "two", "two − one"]
    dense, imp = (row["values"] for row in table["rows"])
    assert (dense[0], imp[0]) == ("dense", "imp · sparsity 0.5")
    assert dense[3]["format"] == "points"
    assert dense[3]["value"] == pytest.approx(0.05075)
    assert dense[3]["low"] == pytest.approx(0.05075 - 12.7062 * 0.00025, abs=1e-6)
    assert imp[3]["value"] == 0
    assert imp[3]["low"] < 0 < imp[3]["high"]


def test_runs_of_one_model_each_are_compared_by_that_model(tmp_path):
    for name, sparsity in (("plain", None), ("small", 0.5)):
        result(cell(name, 0.8, sparsity, 1), folder=tmp_path / name, name=name).save()
    content = content_of(report([tmp_path / "plain", tmp_path / "small"], tmp_path / "both.html").read_text())
    (table,) = section(content, "Runs side by side")["parts"]
    (row,) = table["rows"]
    assert [row["values"][0], row["values"][3]["value"]] == ["the model", 0]


def test_a_shared_encoder_has_its_table_and_its_sentence(tmp_path):
    cells = [
        cell(variant, value, sparsity, task=task).model_copy(update={"axes": {"task": task, "seed": 1}})
        for task, values in (("mnli", (0.8, 0.82)), ("rte", (0.6, 0.6)))
        for variant, sparsity, value in zip((WITHOUT, WITH), (None, 0.2), values, strict=True)
    ]
    page = write_report(result(*cells, folder=tmp_path)).read_text()
    assert '<p class="lead">Sharing one encoder under tickets gives 71.0\u00a0%' in page
    (table,) = section(content_of(page), "Sharing")["parts"]
    assert [row["values"][0] for row in table["rows"]] == ["mnli", "rte", "average"]
    assert table["rows"][0]["values"][4]["value"] == pytest.approx(0.02)
    assert table["rows"][2]["values"][5] == pytest.approx(0.9)


def test_the_controls_of_a_shared_encoder_are_columns(tmp_path):
    values = {WITHOUT: (None, 0.8), WITH: (0.2, 0.82), RANDOM: (0.2, 0.79), ALONE: (None, 0.7)}
    cells = [
        cell(variant, value, size, task=task).model_copy(update={"axes": {"task": task, "seed": 1}})
        for task in ("mnli", "rte")
        for variant, (size, value) in values.items()
    ]
    page = write_report(result(*cells, folder=tmp_path)).read_text()
    assert "with random tickets of the same size (+3.0 points" in page
    shared = section(content_of(page), "Sharing")
    assert "Random tickets remove as many units" in shared["note"]
    assert "single fine-tuning" in shared["note"]
    (table,) = shared["parts"]
    assert [column["name"] for column in table["columns"]] == [
        *(
            "task",
            "metric",
            ALONE,
            WITHOUT,
            RANDOM,
            WITH,
            "with − without tickets",
            "with − with random tickets",
        ),
        "parameters left (encoder)",
    ]
    for row in table["rows"]:
        shown = [value["value"] for value in row["values"][2:8]]
        assert shown == pytest.approx([0.7, 0.8, 0.79, 0.82, 0.02, 0.03])


def test_losses_of_trainings_and_of_the_search_behind_a_mask_are_read_from_the_store(tmp_path):
    def keep(name, losses, **stage):
        folder = tmp_path / "store" / name
        folder.mkdir(parents=True)
        history = [{"step": step, "loss": loss, "learning_rate": 0.1} for step, loss in losses]
        figures = {"steps": 9, "epochs": 1, "precision": "fp32", "seconds": 1, "examples_per_second": 1}
        log = TrainLog.of(history, **figures, resumed_from=None)
        (folder / "log.json").write_text(log.model_dump_json())
        write_manifest(folder, {"stage": {"kind": name.split("/")[0], **stage}, "label": "x", "made": {}})

    cells = [cell("imp", 0.9, 0.5, seed) for seed in (1, 2)]
    keep("search/5ea4c4", [(1, 3.0), (2, 2.5)])
    keep("draw/d4a3", [], inputs={"scores": "5ea4c4"})
    for number, one in enumerate(cells):
        keep(one.stages.model, [(1, 1.0 + number), (2, 0.5)])
    masked = [
        one.model_copy(update={"stages": one.stages.model_copy(update={"mask": "draw/d4a3"})})
        for one in cells
    ]
    training, search = section(shown(tmp_path, *masked, store=tmp_path / "store"), "Losses")["parts"]
    first, last = training["series"][0]["points"]
    assert (first["x"], first["y"], first["low"], first["high"]) == (1, 1.5, 1.0, 2.0)
    assert (last["x"], last["y"]) == (2, 0.5)
    assert [point["y"] for point in search["series"][0]["points"]] == [3.0, 2.5]


def test_runs_of_one_name_are_called_by_their_folders(tmp_path):
    for folder in ("first", "second"):
        result(cell("dense", 0.9), folder=tmp_path / folder, name="same").save()
    content = content_of(
        report([tmp_path / "first", tmp_path / "second"], tmp_path / "both.html").read_text()
    )
    assert content["facets"]["run"] == ["first", "second"]


def test_an_attack_s_folder_makes_a_page_by_itself(folder, tmp_path):
    content = content_of(report([folder / "store" / ATTACK], tmp_path / "attack.html").read_text())
    figures, curve, texts = content["sections"]
    assert [one["title"] for one in (figures, curve, texts)] == [
        "Figures",
        "Accuracy by changed words",
        "Attacked sentences",
    ]
    assert figures["parts"][0]["rows"][0]["values"][2:4] == [2, 1.0]
    assert figures["parts"][0]["rows"][0]["values"][4]["value"] == 0.5
    page = (tmp_path / "attack.html").read_text()
    assert "accuracy 50.0\u00a0% under attack (95\u00a0%: 9.5 to 90.5) against 100.0\u00a0% clean." in page
    assert [point["y"] for point in curve["parts"][0]["series"][0]["points"]] == [1.0, *[0.5] * 8]


def test_a_folder_that_holds_neither_is_told_what_does(tmp_path):
    with pytest.raises(TombolaError, match="pass a folder written by `tombola run`"):
        report([tmp_path], tmp_path / "report.html")


def test_what_was_measured_of_shipped_models_stands_in_the_headline(tmp_path):
    cells = [
        cell("dense", 0.8, measured=measured()),
        cell("heads", 0.8, 0.5, measured=measured(1.25)),
        cell("weights", 0.8, 0.5),
    ]
    content = shown(tmp_path, *cells)
    (table,) = section(content, "Scores")["parts"]
    names = [column["name"] for column in table["columns"]]
    at = names.index("parameters shipped")
    assert names[at:] == [
        "parameters shipped", "MB on disk", "speed-up, batch 1", "speed-up, batch 32", "ms, batch 1", "ms, batch 32",
    ]  # fmt: skip
    dense, heads, weights = (row["values"][at:] for row in table["rows"])
    assert dense == [1_000_000, 4.0, None, None, None, None]
    assert heads[:2] == [800_000, 3.2]
    assert (heads[2]["value"], heads[2]["low"], heads[2]["high"]) == (1.25, 1.2, 1.3)
    assert heads[4:] == ["10 → 8", "200 → 160"]
    assert weights == [None] * 6
    (matching,) = section(content, "Matching tickets")["parts"]
    assert matching["rows"][0]["values"][4]["value"] == 1.25


def test_phases_of_several_runs_are_told_apart(folder, tmp_path):
    rich_result(tmp_path / "again", tmp_path / "store").save()
    content = content_of(report([folder, tmp_path / "again"], tmp_path / "both.html").read_text())
    charts = section(content, "Phase transition")["parts"]
    assert [chart["facets"]["run"] for chart in charts] == [folder.name, "again"]


def test_a_study_of_which_nothing_was_finished_shows_what_failed(tmp_path):
    failure = FailureRecord(
        stage="train/abc", label="fine-tune", reason="out of memory", log="x.log", cells=["a", "b"]
    )
    content = shown(tmp_path, failures=[failure])
    assert [one["title"] for one in content["sections"]] == ["Failures", "Recipe and versions"]
    (table,) = section(content, "Failures")["parts"]
    assert table["rows"][0]["values"] == ["train/abc", "fine-tune", "out of memory", "x.log", 2]


def test_tensors_of_a_map_are_named_by_their_shortest_telling_end():
    names = ["attention.self.query", "attention.output.dense", "output.dense", "intermediate.dense"]
    assert _endings(names) == {
        "attention.self.query": "query",
        "attention.output.dense": "attention.output.dense",
        "output.dense": "output.dense",
        "intermediate.dense": "intermediate.dense",
    }


def test_claims_are_a_table_of_verdicts_with_the_differences_behind_them(tmp_path):
    cells = [cell(name, value, 0.5, seed) for name, value in (("a", 0.9), ("b", 0.7)) for seed in (1, 2)]
    claims = {"a beats b": Claim(variant="a", over="b"), "b is close": Claim(variant="b", over="a", by=-5)}
    (table,) = section(shown(tmp_path, *cells, claims=claims), "Claims")["parts"]
    names = [column["name"] for column in table["columns"]]
    rows = [dict(zip(names, row["values"], strict=True)) for row in table["rows"]]
    assert [(row["claim"], row["verdict"], row["gain at least"], row["seeds"]) for row in rows] == [
        ("a beats b", "holds", "0", 2),
        ("b is close", "does not hold", "−5", 2),
    ]
    assert rows[0]["difference"]["value"] == pytest.approx(0.2)
    assert rows[0]["at"] == "sparsity 0.5"
    dense = [cell(name, 0.9, None, 1) for name in ("a", "b")]
    (table,) = section(shown(tmp_path, *dense, claims=claims), "Claims")["parts"]
    assert "at" not in [column["name"] for column in table["columns"]]
