"""The page in a real browser: nothing goes wrong, everything is drawn, filters filter, and data stays text."""

import csv
import io
import re
import shutil
from pathlib import Path

import pytest

from tests.report.rich import ATTACK, HOSTILE, rich_result, transferred
from tests.results.builder import cell, measured, result, score
from tombola.evaluation.scores import Score
from tombola.pipeline.sharing import ALONE, RANDOM, WITH, WITHOUT
from tombola.report import report, write_report
from tombola.results.formatting import write_value

CHROMIUM = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium: `make browser` installs it, as root on Debian"
)


@pytest.fixture(scope="module")
def browser():
    with pytest.importorskip("playwright.sync_api").sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    return write_report(rich_result(folder, folder / "store"), store=folder / "store")


class Visit:
    """The page in a window of its own, with everything that went wrong in it and that it asked for."""

    def __init__(self, browser, file, theme="light", width=1280):
        self.window = browser.new_context(color_scheme=theme, viewport={"width": width, "height": 900})
        self.page = self.window.new_page()
        self.wrong, self.asked = [], []
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())


@pytest.fixture
def visit(browser, file):
    visits = []

    def open_page(**how):
        visits.append(Visit(browser, file, **how))
        return visits[-1]

    yield open_page
    for one in visits:
        one.window.close()


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_it_draws_everything_without_a_complaint_or_a_request_and_fits_the_window(visit, theme, width):
    seen = visit(theme=theme, width=width)
    page = seen.page
    assert page.locator("figure[data-kind=curves] svg").count() == 7
    assert "matches the dense model" in page.locator(".lead").text_content()
    assert page.locator("figure[data-kind=frontier] svg").count() == 2
    assert page.locator("figure[data-kind=heatmap] table").count() == 11
    assert page.locator("figure[data-kind=sentences] ins").count() == 4
    assert page.locator(".chart svg path").count() > 50
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert seen.wrong == []
    assert len(seen.asked) == 1


def test_a_press_on_a_variant_filters_tables_and_charts_and_another_brings_it_back(visit):
    page = visit().page
    rows = page.locator("section", has=page.get_by_role("heading", name="Scores", exact=True)).locator(
        "tbody tr:not([hidden])"
    )
    chart = page.locator("figure[data-kind=curves]").first
    chip = page.get_by_role("button", name="winning", exact=True)
    assert rows.count() == 10
    assert "winning" in chart.locator("svg").text_content()
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    assert rows.count() == 7
    assert "winning" not in chart.locator("svg").text_content()
    assert not page.get_by_role("heading", name="Frozen tensors").is_visible()
    chip.click()
    assert rows.count() == 10
    assert "winning" in chart.locator("svg").text_content()


def test_hostile_text_stays_text(visit):
    page = visit().page
    assert page.title() == f"rich {HOSTILE} · Tombola"
    assert page.locator("img").count() == 0
    assert HOSTILE in page.locator("h1").text_content()
    assert HOSTILE in page.locator("ins").first.text_content()


def test_a_transfer_is_a_map_in_which_hostile_names_stay_text(browser, tmp_path):
    page = Visit(browser, write_report(transferred(tmp_path))).page
    matrix = page.locator("figure[data-kind=heatmap] table")
    assert matrix.count() == 1
    assert "−5.0" in matrix.text_content()
    assert HOSTILE in matrix.text_content()
    assert page.locator("img").count() == 0


def test_correlations_ratios_and_remarks_are_written_out(browser, tmp_path):
    scores = {"validation": {"pearson": Score(-0.347, 0.02, 50, "Fisher z")}}
    cells = [
        cell("dense", scores, measured=measured(), constants={"validation": 0.0}),
        cell("heads", scores, 0.5, measured=measured(1.42)),
    ]
    page = Visit(browser, write_report(result(*cells, folder=tmp_path))).page
    scored = page.locator("section", has=page.get_by_role("heading", name="Scores", exact=True))
    assert "−0.347" in scored.locator("tbody").text_content()
    assert "1.42 ×" in scored.locator("tbody").text_content()
    assert "has not learned the task" in page.locator(".remarks").text_content()


def test_numbers_are_rounded_in_tables_as_in_sentences(browser, tmp_path):
    shares = [0.8625, 0.8375, 0.8345, 0.0065, 0.5715]
    perplexities = [31.0625, 1.0005, 9999.9996, 12345.678, 2e7]
    cells = [
        cell(
            f"model {number}",
            {
                "validation": {"accuracy": score(share)},
                "other": {"perplexity": Score(perplexity, 0.5, 90, "delta method")},
            },
        )
        for number, (share, perplexity) in enumerate(zip(shares, perplexities, strict=True))
    ]
    page = Visit(browser, write_report(result(*cells, folder=tmp_path))).page
    scored = page.locator("section", has=page.get_by_role("heading", name="Scores", exact=True))
    shown = [
        cell.evaluate("one => one.firstChild.textContent") for cell in scored.locator("td:has(small)").all()
    ]
    assert shown[::2] == [write_value(share, "accuracy").removesuffix(" %") for share in shares]
    assert shown[1::2] == [write_value(value, "perplexity") for value in perplexities]


def test_pointing_at_a_chart_tells_its_numbers(visit):
    page = visit().page
    chart = page.locator("figure[data-kind=frontier] .chart").first
    chart.scroll_into_view_if_needed()
    spot = chart.locator("svg path[fill='#bd4e00']").first
    spot.hover(force=True)
    tip = chart.locator(".tip")
    tip.wait_for(timeout=3000)
    assert "winning" in tip.text_content()
    assert "sparsity" in tip.text_content()


def test_a_table_downloads_as_csv_with_the_rows_that_are_shown(visit):
    page = visit().page
    page.get_by_role("button", name="random", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download scores as CSV").click()
    text = waiting.value.path().read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert waiting.value.suggested_filename == "scores.csv"
    assert len(rows) == 7
    assert {row["variant"] for row in rows} == {"dense", "winning", "losing"}
    assert float(rows[0]["validation, accuracy"]) == pytest.approx(0.81)
    assert float(rows[0]["validation, accuracy low"]) < 0.81 < float(rows[0]["validation, accuracy high"])


def test_the_theme_can_be_switched(visit):
    page = visit(theme="dark").page
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(colour)
    page.get_by_role("button", name=re.compile("light and dark")).click()
    assert page.evaluate(colour) != before


LONG = "a variant whose name is a good deal longer than the space beside a line of a chart"

FAULTS = (Path(__file__).parent / "faults.js").read_text()


@pytest.fixture(scope="module")
def pages(file, tmp_path_factory):
    """Pages of every kind: rich, with long names, of one size, of several runs, of a sharing, of an attack."""
    folder = tmp_path_factory.mktemp("pages")
    sizes = [
        cell(name, {"validation": 0.9 - 0.3 * size, "a/rather/long/name-of-a-task.yaml": 0.5}, size)
        for name in (LONG, f"{LONG} 2", "imp")
        for size in (0.3, 0.5, 0.7)
    ]
    dense = cell("dense", {"validation": 0.8, "a/rather/long/name-of-a-task.yaml": 0.5}, measured=measured())
    one = [dense, cell(LONG, 0.7, 0.5, measured=measured(1.42), under={"deepwordbug": 0.3})]
    sharing = [
        cell(variant, 0.8, size, task=task).model_copy(update={"axes": {"task": task, "seed": 1}})
        for task in ("mnli", "a task of a long name")
        for variant, size in ((WITHOUT, None), (WITH, 0.2), (RANDOM, 0.2), (ALONE, None))
    ]
    found = {"rich": file}
    for name, cells in {"long": [dense, *sizes], "one": one, "sharing": sharing}.items():
        made = result(*cells, folder=folder / name, name=name)
        made.save()
        found[name] = write_report(made, store=folder)
    found["runs"] = report([folder / "long", folder / "one"], folder / "runs.html", store=folder)
    found["attack"] = report([file.parent / "store" / ATTACK], folder / "attack.html", store=folder)
    return found


@pytest.mark.parametrize("width", [360, 800, 1300])
@pytest.mark.parametrize(
    "name",
    [
        "rich",
        "one",
        *(pytest.param(name, marks=pytest.mark.thorough) for name in ("long", "runs", "sharing", "attack")),
    ],
)
def test_no_text_is_clipped_and_nothing_overlaps_in_either_theme(browser, pages, name, width):
    seen = Visit(browser, pages[name], theme="light", width=width)
    assert seen.page.evaluate(FAULTS) == []
    seen.page.get_by_role("button", name=re.compile("light and dark")).click()
    assert seen.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert seen.page.evaluate(FAULTS) == []
    assert seen.wrong == []
    assert seen.page.locator(".lead").is_visible()
    seen.window.close()


def test_names_too_long_for_the_ends_of_lines_are_a_legend_below(browser, pages):
    page = Visit(browser, pages["long"], width=360).page
    chart = page.locator("figure[data-kind=curves]").first
    assert chart.locator(".legend li").all_text_contents() == ["dense", LONG, f"{LONG} 2", "imp"]
    assert LONG not in chart.locator("svg").text_content()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_word_without_a_break_widens_nothing(browser, tmp_path, width):
    word = "Donaudampfschifffahrtsgesellschaftskapitän" * 3
    cells = [
        cell(name, {f"{word}/test": value, "other": {"perplexity": Score(level, 9.0, 90, "delta method")}}, size)
        for name, value, level, size in (("dense", 0.8, 30.0, None), (word, 0.7, 45678.9, 0.5), ("b", 0.6, 1e8, 0.5))
    ]  # fmt: skip
    page = Visit(
        browser, write_report(result(*cells, folder=tmp_path, name=word, about=word)), width=width
    ).page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(FAULTS) == []


def test_the_first_screen_has_sentence_chart_and_table(browser, pages):
    for name in ("one", "rich"):
        page = Visit(browser, pages[name], width=1300).page
        for part in (".lead", ".glance figure", "section:not(.glance) figure tbody tr"):
            assert page.locator(part).first.bounding_box()["y"] < 900


def test_a_table_that_is_wider_than_a_phone_shows_that_it_scrolls(browser, pages):
    page = Visit(browser, pages["rich"], width=390).page
    table = page.get_by_role("region", name="scores", exact=True)
    hint = "one => getComputedStyle(one.parentElement.querySelector('figcaption'), '::after').content"
    assert table.get_attribute("data-more") is not None
    assert "more columns" in table.evaluate(hint)
    box, third = table.bounding_box(), table.locator("tbody tr > :nth-child(3)").first.bounding_box()
    assert third["x"] + third["width"] < box["x"] + box["width"]
    table.evaluate("one => { one.scrollLeft = one.scrollWidth; }")
    page.wait_for_timeout(100)
    assert table.get_attribute("data-more") is None
    assert "more columns" not in table.evaluate(hint)


def test_a_few_models_stand_side_by_side(browser, pages):
    page = Visit(browser, pages["one"]).page
    table = page.locator("table.turned")
    assert table.locator("thead th").all_text_contents() == ["variant", "dense", LONG]
    assert "1.42 ×" in table.locator("tr", has_text="speed-up").first.text_content()
    page.get_by_role("button", name="dense", exact=True).click()
    assert [cell.is_visible() for cell in table.locator("thead th").all()] == [True, False, True]
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download scores as CSV").click()
    rows = list(csv.DictReader(io.StringIO(waiting.value.path().read_text())))
    assert [row["variant"] for row in rows] == [LONG]


def test_a_single_point_has_a_whisker(browser, tmp_path):
    cells = [
        cell("dense", 0.8), cell("imp", 0.7, 0.5), cell("imp", 0.6, 0.7), cell("random", 0.5, 0.5),
    ]  # fmt: skip
    page = Visit(browser, write_report(result(*cells, folder=tmp_path))).page
    chart = page.locator("figure[data-kind=curves] .chart").first
    series = chart.evaluate("one => echarts.getInstanceByDom(one).getOption().series")
    low, high = next([y for _, y in one["data"]] for one in series if one["id"] == "whisker random")
    assert (low, high) == pytest.approx(score(0.5).interval())


def test_shares_and_perplexities_have_scales_of_their_own(browser, tmp_path):
    def scores(perplexity, accuracy):
        return {
            "wikitext2/test": {"perplexity": Score(perplexity, 1.0, 90, "delta method")},
            "other/test": accuracy,
        }

    cells = [cell("dense", scores(30.0, 0.5)), cell("imp", scores(40.0, 0.45), 0.5)]
    page = Visit(browser, write_report(result(*cells, folder=tmp_path))).page
    ends = [row.locator(".ends span").all_text_contents() for row in page.locator(".scale").all()]
    assert [[end.endswith("%") for end in pair] for pair in ends] == [[False, False], [True, True]]


def test_print_is_light_and_whole(browser, pages, tmp_path):
    page = Visit(browser, pages["rich"], theme="dark").page
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert not page.locator("#theme").is_visible()
    assert page.locator(".scroll").first.evaluate("one => getComputedStyle(one).overflowX") == "visible"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
