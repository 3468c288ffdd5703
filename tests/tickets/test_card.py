"""A model card is read by others: what a recipe says stays text, and no path of the maker's machine stands in it."""

import json
import re

import pytest

import tombola
from tombola.tickets.card import plain
from tombola.tickets.ticket import ticket_card

HOSTILE = "fine\n```\n<script>alert(1)</script>\n````\n[x](javascript:alert(1))"


def outside_code(card):
    """The lines of Markdown that no fence encloses, as a renderer sees them."""
    lines, fence = [], None
    for line in card.splitlines():
        marks = line[: len(line) - len(line.lstrip("`"))]
        if fence is None and len(marks) >= 3:
            fence = marks
        elif fence is not None and line.strip() == marks and len(marks) >= len(fence):
            fence = None
        elif fence is None:
            lines.append(line)
    assert fence is None
    return "\n".join(lines[lines.index("---", 1) + 1 :])


def test_nothing_that_a_recipe_says_becomes_markup(ticket_info):
    recipe = {**ticket_info["recipe"], "about": HOSTILE, "task": HOSTILE}
    base = {**ticket_info["base"], "name": HOSTILE}
    shown = outside_code(
        ticket_card({**ticket_info, "recipe": recipe, "base": base, "metrics": {HOSTILE: {}}})
    )
    assert "<" not in shown
    assert "](" not in shown
    assert "&#60;script&#62;" in shown


def test_plain_text_stays_as_it_is():
    assert plain("A 50% ticket of bert-base-uncased for sst2") == "A 50% ticket of bert-base-uncased for sst2"


@pytest.fixture(scope="module")
def written(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    recipe = world.recipe(
        search={"method": "magnitude"}, draw={"sparsity": 0.5}, evaluate={"on": [str(world.task)]}
    )
    return tombola.run(recipe, output=folder / "out", store=folder / "store")


@pytest.fixture(scope="module")
def ticket_info(written):
    return json.loads((written.folder / written.cells[0].ticket / "ticket.json").read_text())


def test_published_files_hold_no_absolute_path(written, world):
    from tombola.report import write_report

    page = write_report(written, written.folder / "report.html")
    ticket = written.folder / written.cells[0].ticket
    for file in (written.folder / "results.json", page, ticket / "ticket.json", ticket / "README.md"):
        text = file.read_text()
        assert f'"{world.model}' not in text, file
        assert f" {world.model}" not in text, file
        assert f'"{world.task}' not in text, file
    place = str(world.model.parent).strip("/")
    assert place not in (ticket / "README.md").read_text()
    assert "task: task.yaml" in (ticket / "README.md").read_text()
    assert re.search(r"^# A \d+% ticket of \S+ for task$", (ticket / "README.md").read_text(), re.MULTILINE)
    assert tombola.evaluate(ticket), "the task is found again from the same folder"
